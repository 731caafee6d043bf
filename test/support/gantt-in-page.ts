/**
 * The layout and drawing of the Gantt chart as a script for a page that the test does not build: 32,000 bars
 * of 64 tasks on 8 GPUs.
 */
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'

const FILES = ['gantt-layout', 'gantt-draw'].map((name) =>
  join(import.meta.dirname, `../../ui/charts/${name}.ts`),
)

/** @param body code that uses `canvas`, `ctx`, `bars` and `drawAll`; its value is that of the script */
export function ganttScript(body: string): string {
  const source = FILES.map((file) => stripTypeScriptTypes(readFileSync(file, 'utf8')))
    .join('\n')
    .replaceAll(/^import .*$/gm, '')
    .replaceAll(/^export /gm, '')
  return `(() => {
    ${source}
    const kinds = ['active', 'idle', 'moving', 'out', 'unknown']
    const bars = Array.from({ length: 32000 }, (_, i) => {
      const from = (i >> 6) * 2
      return { row: i % 8, laneKey: 'task-' + (i % 64), from, to: from + 2, kind: kinds[i % 5] }
    })
    const canvas = document.createElement('canvas')
    canvas.width = 1200
    canvas.height = 1200
    const ctx = canvas.getContext('2d')
    const drawAll = () => {
      const layout = layoutGantt(bars, { from: 0, to: 1000, width: 1200, rowCount: 8 })
      const { height } = layout
      drawGantt(ctx, bars, layout, { colourOf: () => '#2f7fd0', selected: null, width: 1200, height })
    }
    ${body}
  })()`
}
