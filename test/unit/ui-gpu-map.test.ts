/** The map of GPUs: places of the cells, keys, and steps of the colours. */
import { describe, expect, test } from 'vitest'
import type { GpuListBody } from '../../controller/api/gpus/schema.ts'
import { gpusOf, ranked, stepOf } from '../../ui/pages/dashboard/gpu-figures.ts'
import { cellAfter, cellAt, heatLayout } from '../../ui/pages/dashboard/heat-layout.ts'

function fleet(nodes: number, each: number): { nodeId: string; nodeName: string }[] {
  return Array.from({ length: nodes * each }, (_, at) => {
    const node = Math.floor(at / each)
    return { nodeId: `id-${node}`, nodeName: `node-${node}` }
  })
}

describe('the places of the cells', () => {
  test('A small fleet has large cells with the names of the nodes, and no node is torn apart', () => {
    const { cells, size, names } = heatLayout(fleet(5, 4), 700)
    expect(size).toBeGreaterThanOrEqual(26)
    expect(names.map(({ text }) => text)).toEqual(['node-0', 'node-1', 'node-2', 'node-3', 'node-4'])
    for (let node = 0; node < 5; node++) {
      const ofNode = cells.slice(4 * node, 4 * node + 4)
      expect(new Set(ofNode.map(({ y }) => y)).size).toBe(1)
    }
  })

  test('10,000 GPUs have a cell each, inside the width and without overlap', () => {
    const { cells, size, names } = heatLayout(fleet(1_250, 8), 1_100)
    expect(cells).toHaveLength(10_000)
    expect(names).toEqual([])
    expect(new Set(cells.map(({ x, y }) => `${x}/${y}`)).size).toBe(10_000)
    expect(Math.max(...cells.map(({ x }) => x + size))).toBeLessThanOrEqual(1_100)
  })

  test('Keys move between cells and rows, and a point finds its cell', () => {
    const layout = heatLayout(fleet(30, 8), 600)
    const first = cellAfter('ArrowRight', null, layout)
    expect(first).toBe(0)
    const below = cellAfter('ArrowDown', 3, layout) as number
    expect(layout.cells[below]?.y).toBeGreaterThan(layout.cells[3]?.y ?? 0)
    expect(layout.cells[below]?.x).toBe(layout.cells[3]?.x)
    expect(cellAfter('ArrowUp', below, layout)).toBe(3)
    expect(cellAfter('End', 3, layout)).toBe(239)
    expect(cellAfter('ArrowRight', 239, layout)).toBe(239)
    expect(cellAfter('x', 3, layout)).toBeNull()
    const { x, y } = layout.cells[77] ?? { x: 0, y: 0 }
    expect(cellAt(x + 1, y + 1, layout)).toBe(77)
    expect(cellAt(-5, 0, layout)).toBeNull()
  })
})

describe('the figures of the cells', () => {
  const body: GpuListBody = {
    at: '',
    minute: { from: '', to: '' },
    hour: { from: '', to: '' },
    nodes: [
      { node_id: 'a', name: 'one', status: 'up', cordoned: false },
      { node_id: 'b', name: 'two', status: 'suspect', cordoned: false },
    ],
    models: ['X'],
    columns: {
      node: [0, 0, 1],
      index: [0, 1, 0],
      model: [0, 0, 0],
      tasks: [1, 0, 1],
      physical_mib: [100, 100, 100],
      used_mib: [59, 0, 90],
      resident_mib: [59, 0, 90],
      out_mib: [0, 0, 0],
      utilization_percent: [80, null, 100],
      starvation_percent: [0, 19, 0],
      swap_outs: [4, 0, 99],
      copy_seconds: [0, 0, 0],
      lost_seconds: [0, 0, 0],
    },
    next_cursor: null,
    total: 3,
  }

  test('Unknown has no step, nor has a GPU whose node is not up', () => {
    const gpus = gpusOf(body)
    const steps = (name: Parameters<typeof stepOf>[0]) => gpus.map((gpu) => stepOf(name, gpu))
    expect(steps('utilization')).toEqual([4, null, null])
    expect(steps('used')).toEqual([2, 0, null])
    expect(steps('swaps')).toEqual([1, 0, null])
    expect(steps('starvation')).toEqual([0, 0, null])
  })

  test('The table begins with the highest figure, and unknown figures come last', () => {
    expect(ranked('utilization', gpusOf(body)).map(({ key }) => key)).toEqual(['b/0', 'a/0', 'a/1'])
  })
})
