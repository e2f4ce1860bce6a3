"""What real QGIS sees of a project, as JSON on standard output; run by QGIS's own Python, in a process of its own.

python3 qgis_eyes.py PROJECT.qgs PICTURE.png
"""

import json
import sys

from qgis.core import (
    QgsApplication,
    QgsLayoutExporter,
    QgsLayoutItemLegend,
    QgsLayoutItemMap,
    QgsLayoutPoint,
    QgsLayoutSize,
    QgsLegendStyle,
    QgsMapLayer,
    QgsPrintLayout,
    QgsProject,
    QgsRasterLayer,
    QgsUnitTypes,
    QgsVectorLayer,
)


def look(path: str, picture: str) -> dict:
    """Messages, layers with their styles, and a picture of what is shown."""
    messages = []
    heard = QgsApplication.messageLog().messageReceived["QString", "QString", "Qgis::MessageLevel"]
    heard.connect(lambda text, tag, level: messages.append((tag, text, int(level))))
    project = QgsProject.instance()
    found = {"is_read": project.read(path), "error": project.error()}
    found["crs"], found["ellipsoid"] = project.crs().toProj(), project.ellipsoid()
    found["shown"] = [node.layerId() for node in project.layerTreeRoot().findLayers() if node.isVisible()]
    found["order"] = [node.layerId() for node in project.layerTreeRoot().findLayers()]
    found["layers"] = {layer.id(): describe(layer) for layer in project.mapLayers().values()}
    paint(project, picture)
    return found | {"messages": messages}


def describe(layer: QgsMapLayer) -> dict:
    """Whether a layer is valid, where it lies and how it looks."""
    corner = layer.extent()
    facts = {
        "name": layer.name(),
        "is_valid": layer.isValid(),
        "error": layer.error().message(),
        "crs": layer.crs().toProj(),
        "extent": [corner.xMinimum(), corner.yMinimum(), corner.xMaximum(), corner.yMaximum()],
        "renderer": layer.renderer().type(),
    }
    if isinstance(layer, QgsVectorLayer):
        # Opened by itself a layer has the style of its file: here the one inside the GeoPackage.
        alone = QgsVectorLayer(layer.source(), "alone", "ogr")
        return facts | {"n_features": layer.featureCount(), "classes": categories(layer), "alone": categories(alone)}
    alone = QgsRasterLayer(layer.source(), "alone", "gdal")
    if facts["renderer"] == "paletted":
        return facts | {"classes": palette(layer), "alone": palette(alone)}
    function = alone.renderer().shader().rasterShaderFunction()
    facts["alone"] = [alone.renderer().type(), function.minimumValue(), function.maximumValue()]
    return facts | {"range": [layer.renderer().classificationMin(), layer.renderer().classificationMax()]}


def categories(layer: QgsVectorLayer) -> list:
    return [(int(c.value()), c.symbol().color().name(), c.label()) for c in layer.renderer().categories()]


def palette(layer: QgsRasterLayer) -> list:
    return [(int(c.value), c.color.name(), c.label) for c in layer.renderer().classes()]


def paint(project: QgsProject, picture: str) -> None:
    """Draw the layers that are shown, with their legend."""
    layout = QgsPrintLayout(project)
    layout.initializeDefaults()
    page, millimetres = layout.pageCollection().page(0), QgsUnitTypes.LayoutMillimeters
    page.setPageSize(QgsLayoutSize(190, 144, millimetres))
    shown = [node.layer() for node in project.layerTreeRoot().findLayers() if node.isVisible()]
    chart = QgsLayoutItemMap(layout)
    chart.setRect(0, 0, 110, 138)
    layout.addLayoutItem(chart)
    chart.attemptMove(QgsLayoutPoint(3, 3, millimetres))
    chart.attemptResize(QgsLayoutSize(110, 138, millimetres))
    chart.setCrs(project.crs())
    chart.setLayers(shown)
    chart.setKeepLayerSet(True)
    chart.zoomToExtent(shown[0].extent())
    legend = QgsLayoutItemLegend(layout)
    legend.setAutoUpdateModel(False)
    root = legend.model().rootGroup()
    for node in root.findLayers():
        if node.layer() not in shown:
            node.parent().removeChildNode(node)
    for style in (QgsLegendStyle.Group, QgsLegendStyle.Subgroup, QgsLegendStyle.SymbolLabel):
        font = legend.styleFont(style)
        font.setPointSize(8)
        legend.setStyleFont(style, font)
    legend.setSymbolHeight(3)
    legend.rstyle(QgsLegendStyle.Symbol).setMargin(QgsLegendStyle.Top, 1.5)
    legend.attemptMove(QgsLayoutPoint(116, 3, millimetres))
    layout.addLayoutItem(legend)
    legend.adjustBoxSize()
    options = QgsLayoutExporter.ImageExportSettings()
    options.dpi = 150
    QgsLayoutExporter(layout).exportToImage(picture, options)


if __name__ == "__main__":
    application = QgsApplication([], False)
    application.initQgis()
    print(json.dumps(look(sys.argv[1], sys.argv[2])))
    sys.stdout.flush()
    application.exitQgis()
