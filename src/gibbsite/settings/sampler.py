"""Settings of the sampler."""

from typing import Annotated, Literal

from pydantic import Field

from gibbsite.settings.section import Count, Fraction, Moderate, Section, Written


class Fit(Section):
    """The sampler. A key without value takes the paper's choice for d features, which its description gives."""

    model: Literal["igmm", "i2gmm", "ai2gmm"] = Field("ai2gmm", description="Which mixture model.")
    chains: Count = Field(2, description="Independent chains.")
    sweeps: Count = Field(300, description="Sweeps per chain.")
    burn_in: Fraction = Field(0.5, description="Share of the sweeps before the structure may be taken.")
    start_components: Count = Field(32, description="Components of the k-means++ start, more where they hold clusters.")
    label_components: Annotated[int, Field(ge=0)] = Field(
        256, description="At most so many components more at the start where labelled pixels lie, one for each."
    )
    class_rule: Literal["evidence", "predictive", "reach"] = Field(
        "reach", description="How a component chooses its class."
    )
    reach_weight: Annotated[float, Field(ge=0.0, le=1e6), Written] = Field(
        2.0, description="reach: weight of the prior in how far a class reaches, in components."
    )
    labels: Literal["bind", "vote"] = Field(
        "vote",
        description="bind: labelled pixels sit in components of their class; vote: they prefer it and name others.",
    )
    split_every: Annotated[int, Field(ge=0)] = Field(
        20, description="Sweeps from one proposal of splits and merges to the next; 0: none."
    )
    pre_sweeps: Annotated[int, Field(ge=0)] = Field(100, description="Sweeps on the labelled pixels alone.")
    outlier_fraction: Annotated[float, Field(ge=0.0, lt=1.0), Written] = Field(
        0.0, description="Least likely share of each class's training pixels that do not pin their component."
    )
    alpha: Moderate = Field(1.0, description="Concentration of components (over pixels).")
    gamma: Moderate = Field(1.0, description="Concentration of classes (over components).")
    degrees: Moderate | None = Field(None, description="Degrees m of the covariance prior, above d − 1; d + 2.")
    kappa0: Moderate = Field(0.1, description="Class means about the data mean (start value for ai2gmm).")
    kappa1: Moderate = Field(0.5, description="Component means about their class mean (start value for ai2gmm).")
    c1: Moderate = Field(0.1, description="ai2gmm: pull of the prior mean towards the data mean.")
    c2: Moderate | None = Field(None, description="ai2gmm: Wishart degrees of the prior scale, above d; d + 2.")
    alpha0: Moderate | None = Field(None, description="ai2gmm: gamma shape of kappa0; 0.2 d + 1.")
    beta0: Moderate | None = Field(None, description="ai2gmm: gamma rate of kappa0; 2 d.")
    alpha1: Moderate | None = Field(None, description="ai2gmm: gamma shape of kappa1; d + 1.")
    beta1: Moderate | None = Field(None, description="ai2gmm: gamma rate of kappa1; 2 d.")
    kappa1_at_least_kappa0: bool = Field(
        True,
        description="ai2gmm: components may not scatter more about their class than classes about the whole.",
    )
    birth_block: Count = Field(4096, description="At most so many pixels per sweep may open components.")


class Select(Section):
    """From chains to one model."""

    polish_sweeps: Count = Field(20, description="Draws with frozen structure that give the probabilities.")
