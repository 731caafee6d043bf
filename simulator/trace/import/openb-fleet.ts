import type { Mib } from '../../../protocol/units.ts'
import { wholeCell } from './csv-cells.ts'
import { readCsv } from './csv-rows.ts'
import { openBytes } from '../file-bytes.ts'
import { TraceError } from '../trace-error.ts'
import { smallestVramMib, type VramMap, withDefaultVram } from './vram-map.ts'

/** Identical nodes, in the form of a scenario's `fleet`. */
export interface FleetEntry {
  readonly count: number
  /** With `{i}` for the number of the node. */
  readonly name: string
  readonly gpus: number
  readonly gpu: { readonly model: string; readonly vram_mib: Mib }
}

export interface OpenbNodeGroup {
  readonly model: string
  readonly gpus: number
  readonly count: number
}

export interface OpenbNodes {
  /**
   * 1. Model, by code units.
   * 2. Number of GPUs.
   */
  readonly groups: readonly OpenbNodeGroup[]
  readonly sha256: string
}

const MAX_GPUS_PER_NODE = 1024

/**
 * Reads an openb node list (columns sn, gpu, model) as groups of identical nodes. Nodes without a GPU are
 * omitted; CPU and host memory are ignored. Throws TraceError for any broken row, because a partial list
 * would be another fleet.
 */
export async function readOpenbNodes(nodesFile: string): Promise<OpenbNodes> {
  const source = await openBytes(nodesFile)
  const groups = new Map<string, { model: string; gpus: number; count: number }>()
  const refuse = (reason: string, line?: number): never => {
    throw new TraceError(
      line === undefined ? { file: nodesFile } : { file: nodesFile, line },
      `cannot be used: ${reason}`,
    )
  }
  for await (const row of readCsv(
    source,
    { required: ['sn', 'gpu', 'model'] },
    { row: () => {}, drop: (reason) => refuse(reason) },
  )) {
    const gpus = wholeCell(row, 'gpu', 0, MAX_GPUS_PER_NODE, { drop: (reason) => refuse(reason, row.line) })
    if (gpus === null || gpus === 0) continue
    const model = row.cells.model === '' ? refuse('no_model', row.line) : row.cells.model
    const key = `${model} ${gpus}`
    const group = groups.get(key) ?? { model, gpus, count: 0 }
    group.count++
    groups.set(key, group)
  }
  if (groups.size === 0) throw new TraceError({ file: nodesFile }, 'has no node with a GPU')
  return { groups: [...groups.values()].sort(byModelThenGpus), sha256: source.sha256() }
}

/**
 * An openb node list as the fleet of a scenario. Throws TraceError with every model whose VRAM neither the
 * map nor DEFAULT_VRAM_MAP has.
 */
export async function openbFleet(nodesFile: string, vramMap?: VramMap): Promise<FleetEntry[]> {
  const { groups } = await readOpenbNodes(nodesFile)
  const vram = withDefaultVram(vramMap)
  smallestVramMib(modelsOf(groups), vram, { file: nodesFile, field: 'model' })
  return groups.map(({ model, gpus, count }) => ({
    count,
    name: `${model.toLowerCase()}-${gpus}x-{i}`,
    gpus,
    gpu: { model, vram_mib: vram.get(model)! },
  }))
}

export function modelsOf(groups: readonly OpenbNodeGroup[]): string[] {
  return [...new Set(groups.map((group) => group.model))]
}

function byModelThenGpus(a: OpenbNodeGroup, b: OpenbNodeGroup): number {
  if (a.model !== b.model) return a.model < b.model ? -1 : 1
  return a.gpus - b.gpus
}
