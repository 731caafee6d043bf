/** `fleet` entries to nodes. */
import { MAX_ATTEMPTS_PER_NODE } from '../../protocol/limits.ts'
import { type MethodProfile, type SwapProfile, SWAP_PROFILES } from './swap-profiles.ts'
import type { Refuse } from '../document/refusal.ts'
import type { ForeignStep, GpuModel, ScenarioNode } from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'
import { MAX_NODES } from './schema-fleet.ts'

type NodesEntry = ScenarioDocument['fleet'][number]
type Method = NonNullable<NodesEntry['gpu']['swap_hooks']>

/** In the order of the file. Refuses names that come up twice and more nodes than MAX_NODES. */
export function nodesOf(fleet: ScenarioDocument['fleet'], refuse: Refuse): ScenarioNode[] {
  const nodes: ScenarioNode[] = []
  const entryOf = new Map<string, number>()
  for (const [index, entry] of fleet.entries()) {
    if (nodes.length + entry.count > MAX_NODES) {
      refuse(
        ['fleet', index, 'count'],
        `makes ${nodes.length + entry.count} nodes with those above; allowed are ${MAX_NODES} in all`,
      )
      return nodes
    }
    const gpu = gpuModelOf(entry)
    for (let i = 0; i < entry.count; i++) {
      const node = nodeOf(entry, gpu, i)
      const earlier = entryOf.get(node.name)
      if (earlier !== undefined) {
        refuse(
          ['fleet', index, 'name'],
          `makes a second node ${node.name}; the first is of fleet[${earlier}]`,
        )
        break
      }
      entryOf.set(node.name, index)
      nodes.push(node)
    }
  }
  return nodes
}

function nodeOf(entry: NodesEntry, gpu: GpuModel, i: number): ScenarioNode {
  return {
    name: entry.name.replaceAll('{i}', String(i)),
    gpuCount: entry.gpus,
    gpu,
    groups: entry.groups,
    safetyReserveMib: entry.safety_reserve_mib,
    overcommitPercent: entry.overcommit_vram_percent,
    hostSwapMib: entry.host_swap_mib ?? 2 * entry.gpus * entry.gpu.vram_mib,
    ...(entry.host_link_mib_per_s === null ? {} : { hostLinkMibPerS: entry.host_link_mib_per_s }),
    ...(entry.prepare_seconds === 0 ? {} : { prepareMs: entry.prepare_seconds * 1000 }),
    ...(entry.max_attempts === MAX_ATTEMPTS_PER_NODE ? {} : { maxAttempts: entry.max_attempts }),
    ...(entry.signals_wanted ? {} : { signalsWanted: false }),
    ...(entry.foreign.length === 0 ? {} : { foreign: foreignOf(entry) }),
    ...(entry.id === null ? {} : { id: entry.id }),
    ...(entry.cordoned ? { isCordoned: true } : {}),
  }
}

/** By time; at one instant in the order of the file. */
function foreignOf({ foreign }: NodesEntry): ForeignStep[] {
  return foreign.map(({ at, mib, gpus }) => ({ atMs: at, mib, gpus })).toSorted((a, b) => a.atMs - b.atMs)
}

function gpuModelOf({ gpu }: NodesEntry): GpuModel {
  return {
    model: gpu.model,
    vramMib: gpu.vram_mib,
    swap: swapProfileOf(gpu.swap),
    ...methodsOf(gpu),
    ...(gpu.driver_swaps ? {} : { driverSwaps: false }),
    efficiencyPermille: gpu.efficiency,
    ...(gpu.start_ms === 0 ? {} : { startMs: gpu.start_ms }),
  }
}

function methodsOf({ swap_hooks: hooks, swap_engine: engine }: NodesEntry['gpu']): Partial<GpuModel> {
  if (hooks === null && engine === null) return {}
  const of = ({ swap, residual_mib }: Method): MethodProfile => ({
    swap: swapProfileOf(swap),
    residualMib: residual_mib,
  })
  return {
    swapMethods: {
      ...(hooks === null ? {} : { hooks: of(hooks) }),
      ...(engine === null ? {} : { engine: of(engine) }),
    },
  }
}

/** A profile by name, or its numbers. */
export function swapProfileOf(swap: NodesEntry['gpu']['swap']): SwapProfile {
  if (typeof swap === 'string') return SWAP_PROFILES[swap]
  return {
    outMibPerS: swap.out_mib_per_s,
    inMibPerS: swap.in_mib_per_s,
    outFixedMs: swap.out_fixed_ms,
    inFixedMs: swap.in_fixed_ms,
  }
}
