"""What real QGIS sees of a project, as JSON on standard output; run by QGIS's own Python, in a process of its own.

python3 qgis_eyes.py PROJECT.qgs PICTURE.png
"""

import json
import sys

from qgis.core import (
    QgsApplication,
    QgsMapLayer,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsProject,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor


def look(path: str, picture: str) -> dict:
    """Messages, layers with their styles, and a picture of what is shown."""
    messages = []
    heard = QgsApplication.messageLog().messageReceived["QString", "QString", "Qgis::MessageLevel"]
    heard.connect(lambda text, tag, level: messages.append((tag, text, int(level))))
    project = QgsProject.instance()
    is_read = project.read(path)
    found = {
        "is_read": is_read,
        "error": project.error(),
        "crs": project.crs().description(),
        "crs_is_valid": project.crs().isValid(),
        "ellipsoid": project.ellipsoid(),
        "layers": [describe(layer) for layer in project.mapLayers().values()],
    }
    paint(project, picture)
    found["messages"] = messages
    return found


def describe(layer: QgsMapLayer) -> dict:
    facts = {
        "id": layer.id(),
        "name": layer.name(),
        "is_valid": layer.isValid(),
        "error": layer.error().message(),
        "crs": layer.crs().toProj(),
        "source": layer.source(),
        "renderer": layer.renderer().type() if layer.renderer() else None,
        "extent": [
            layer.extent().xMinimum(),
            layer.extent().yMinimum(),
            layer.extent().xMaximum(),
            layer.extent().yMaximum(),
        ],
    }
    if isinstance(layer, QgsVectorLayer):
        facts["n_features"] = layer.featureCount()
        facts["classes"] = [
            (int(c.value()), c.symbol().color().name(), c.label()) for c in layer.renderer().categories()
        ]
        # The style inside the GeoPackage, as a layer that is opened by itself takes it.
        alone = QgsVectorLayer(layer.source(), "alone", "ogr")
        facts["alone"] = (
            [(int(c.value()), c.symbol().color().name(), c.label()) for c in alone.renderer().categories()]
            if alone.renderer().type() == "categorizedSymbol"
            else alone.renderer().type()
        )
    elif facts["renderer"] == "paletted":
        facts["classes"] = [(int(c.value), c.color.name(), c.label) for c in layer.renderer().classes()]
    else:
        facts["range"] = [layer.renderer().classificationMin(), layer.renderer().classificationMax()]
        facts["n_colours"] = len(layer.renderer().shader().rasterShaderFunction().colorRampItemList())
    return facts


def paint(project: QgsProject, picture: str) -> None:
    shown = [node.layer() for node in project.layerTreeRoot().findLayers() if node.isVisible()]
    settings = QgsMapSettings()
    settings.setLayers(shown)
    settings.setDestinationCrs(project.crs())
    settings.setExtent(shown[0].extent())
    settings.setOutputSize(QSize(720, 720))
    settings.setBackgroundColor(QColor("white"))
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    job.renderedImage().save(picture)


if __name__ == "__main__":
    application = QgsApplication([], False)
    application.initQgis()
    print(json.dumps(look(sys.argv[1], sys.argv[2])))
    application.exitQgis()
