/**
 * The script of a page: redraws each chart with uPlot in place of its SVG, so that a cursor shows values and
 * a part can be zoomed. Values come from the table below the chart; a chart is drawn when it becomes visible.
 * The text of a script, because it is hashed and embedded in the page.
 */
export const CHART_SCRIPT = `'use strict'
{
  const figures = [...document.querySelectorAll('figure.chart')]
  const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]]
  const plots = new Map()
  const draw = (figure) => {
    const place = figure.querySelector('.plot')
    if (figure.closest('details:not([open])') !== null) return
    const { unit, limits, marks } = JSON.parse(figure.querySelector('script').textContent)
    const { tHead, tBodies } = figure.querySelector('.wide > table')
    const [xTitle, ...heads] = [...tHead.rows[0].cells].map((cell) => cell.textContent.trim())
    const number = (text) => (text.trim() === '–' ? null : Number(text))
    const rows = [...tBodies[0].rows].map((row) => [...row.cells].map((cell) => number(cell.textContent)))
    const names = heads.filter((_, i) => i % 4 === 0)
    const css = getComputedStyle(document.documentElement)
    const colour = (name) => css.getPropertyValue('--' + name).trim()
    const thin = { stroke: colour('line'), width: 1 }
    const axis = { stroke: colour('soft'), grid: thin, ticks: thin }
    if (rows.length < 2) return
    const column = (at) => rows.map((row) => row[at])
    const shown = (plot, value) => (Number.isFinite(value) ? value.toFixed(2) + ' ' + unit : '–')
    const [series, data, bands] = [[{ label: xTitle }], [column(0)], []]
    names.forEach((name, i) => {
      const stroke = colour('c' + i)
      const at = series.length
      const points = { show: true, size: 7, fill: stroke }
      series.push({ label: name, stroke, width: 2, dash: dashes[i], value: shown, points })
      for (const edge of [' p90', ' p10'])
        series.push({ label: name + edge, value: shown, points: { show: false } })
      data.push(column(4 * i + 1), column(4 * i + 3), column(4 * i + 2))
      bands.push({ series: [at + 1, at + 2], fill: stroke + '26' })
    })
    const notes = (plot) => {
      const { ctx, bbox } = plot
      const line = (x1, y1, x2, y2, stroke, dash, label, labelX, labelY) => {
        ctx.save()
        ctx.strokeStyle = stroke
        ctx.fillStyle = colour('ink')
        ctx.font = 12 * devicePixelRatio + 'px system-ui, sans-serif'
        ctx.textAlign = 'left'
        ctx.textBaseline = 'alphabetic'
        ctx.lineWidth = 1.5 * devicePixelRatio
        ctx.setLineDash(dash.map((each) => each * devicePixelRatio))
        ctx.beginPath()
        ctx.moveTo(x1, y1)
        ctx.lineTo(x2, y2)
        ctx.stroke()
        ctx.fillText(label, labelX, labelY)
        ctx.restore()
      }
      for (const { y, label } of limits) {
        const at = plot.valToPos(y, 'y', true)
        line(bbox.left, at, bbox.left + bbox.width, at, colour('bad'), [4, 4], label, bbox.left + 8, at - 5)
      }
      marks.forEach(({ x, label }, row) => {
        const at = plot.valToPos(x, 'x', true)
        const stroke = row === 0 ? colour('good') : colour('soft')
        const dash = row === 0 ? [] : [3, 3]
        const { top, height } = bbox
        line(at, top, at, top + height, stroke, dash, label, at + 5, top + 16 + row * 18)
      })
    }
    const highest = Math.max(...limits.map((limit) => limit.y), 0)
    const range = (plot, low, high) => [Math.min(0, low), Math.max(high, highest, 1e-9) * 1.05]
    plots.get(figure)?.destroy()
    place.replaceChildren()
    const options = {
      width: place.clientWidth,
      height: 320,
      scales: { x: { time: false }, y: { range } },
      axes: [{ ...axis, label: xTitle, labelSize: 20 }, { ...axis, label: unit, labelSize: 20, size: 70 }],
      series,
      bands,
      hooks: { draw: [notes] },
    }
    plots.set(figure, new uPlot(options, data, place))
    figure.classList.add('drawn')
  }
  const drawAll = () => figures.forEach(draw)
  drawAll()
  const open = ({ target }) => target.querySelectorAll('figure.chart:not(.drawn)').forEach(draw)
  addEventListener('toggle', open, true)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll)
  const widthOf = (figure) => figure.querySelector('.plot').clientWidth
  const resize = (plot, figure) => plot.setSize({ width: widthOf(figure), height: 320 })
  addEventListener('resize', () => plots.forEach(resize))
}
`
