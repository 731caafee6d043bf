/**
 * Previews a change of the configuration: the figures of each GPU, tasks that would fit, and tasks that would
 * block others. Evaluated on copies with the rules of the engine; the live cluster is only read, and nothing
 * is stored.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import { policyOf, type Config, type ConfigFields } from '../../model/config.ts'
import { overCommitted, reserveDeficit } from '../../model/node-conditions.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { movableMib, type Placement, type Gpu, type Node } from '../../model/placement.ts'
import { effectiveSchedulableMib, settingsOn, type NodeSettings } from '../../model/vram.ts'
import { capacityForSwappableMib } from '../../policy/placement/feasible.ts'
import type { Cluster } from '../../state/cluster.ts'
import {
  type Overrides,
  overridesAfter,
  plannedConfig,
  putConfig,
  putNodeConfig,
} from '../../engine/inputs/commands/cluster-commands.ts'
import type { Answer, NodeConfigChange } from '../../model/command.ts'
import type { LiveNode } from '../../state/facts.ts'
import { cycleImpact, type CycleImpact } from './impact-cycle.ts'
import { pendingImpact, type PendingImpact } from './impact-pending.ts'
import { applyEligibility, applySettings, forkNode } from '../../state/snapshot/node-fork.ts'

/** Maximum number of nodes, GPUs and tasks that are named; the others are counted. */
const MAX_NAMED_IN_IMPACT = 20

const FIGURES = [
  'effectiveSchedulableMib',
  'commitLimitMib',
  'overCommittedMib',
  'reserveDeficitMib',
] as const
/** Sums over GPUs, MiB: sums of floors, never a floor of the sum. */
export type ImpactFigures = Readonly<Record<(typeof FIGURES)[number], Mib>>

export interface NodeImpact {
  readonly nodeId: string
  readonly name: string
  readonly before: ImpactFigures & NodeSettings
  readonly after: ImpactFigures & NodeSettings
}

/** A GPU with more committed, or more resident, than allowed. */
export interface GpuOver {
  readonly nodeId: string
  readonly gpu: number
  readonly overCommittedMib: Mib
  readonly reserveDeficitMib: Mib
  /** At most MAX_NAMED_IN_IMPACT. */
  readonly taskIds: readonly string[]
  readonly taskCount: number
}

/**
 * A placed task that could not become resident again: noswap tasks, foreign memory and the reserve leave too
 * little.
 */
export interface ResidencyImpossible {
  readonly taskId: string
  readonly nodeId: string
  readonly gpu: number
  readonly needMib: Mib
  readonly haveMib: Mib
}

/** A list that names some items and counts all. */
export interface Named<T> {
  readonly count: number
  readonly named: readonly T[]
}

export interface Impact {
  readonly total: { readonly before: ImpactFigures; readonly after: ImpactFigures }
  /** Nodes whose figures or settings change, largest change of the commit limit first. */
  readonly nodes: Named<NodeImpact>
  readonly gpusOver: Named<GpuOver>
  readonly residencyImpossible: Named<ResidencyImpossible>
  readonly pending: PendingImpact
  /** Null if the cluster is too large to be forked. */
  readonly nextCycle: CycleImpact | null
}

/** The answer of a dry run: the changed object, and the impact of the change. */
export interface Planned<T> {
  readonly value: T
  readonly impact: Impact
}

export function planConfig(c: Cluster, change: Partial<ConfigFields>, now: Instant): Answer<Planned<Config>> {
  const planned = plannedConfig(c.config, change)
  if (!planned.ok) return planned
  const { value } = planned
  const apply = (fork: Cluster) => void putConfig(fork, change, null, now)
  const proposal = { config: value, overridesOf: (node: LiveNode) => node, apply }
  return { ok: true, value: { value, impact: impactOf(c, proposal, now) } }
}

export function planNodeConfig(
  c: Cluster,
  nodeId: string,
  change: NodeConfigChange,
  now: Instant,
): Answer<Planned<Node>> {
  const node = c.nodes.get(nodeId)
  if (node === undefined) return { ok: false, refusal: { code: 'not_found', what: 'node', id: nodeId } }
  const overrides = overridesAfter(node, change)
  const overridesOf = (each: LiveNode) => (each === node ? overrides : each)
  const value = Object.assign(forkNode(node), overrides)
  applySettings(value, settingsOn(overrides, c.policy))
  const apply = (fork: Cluster) => void putNodeConfig(fork, nodeId, change, now)
  return { ok: true, value: { value, impact: impactOf(c, { config: c.config, overridesOf, apply }, now) } }
}

/** A proposed change, and its application to a fork. */
interface Proposal {
  readonly config: Config
  readonly overridesOf: (node: LiveNode) => Overrides
  readonly apply: (fork: Cluster) => void
}

function impactOf(c: Cluster, proposal: Proposal, now: Instant): Impact {
  const { overridesOf } = proposal
  const policy = policyOf(proposal.config.fields)
  const changesEligibility =
    policy.idlePeriodMs !== c.policy.idlePeriodMs || policy.maxResidencyMs !== c.policy.maxResidencyMs
  const forks = new Map<LiveNode, LiveNode>()
  for (const node of c.nodes.values()) {
    const fork = forkNode(node)
    applySettings(fork, settingsOn(overridesOf(node), policy))
    if (changesEligibility) applyEligibility(fork, policy, now)
    forks.set(node, fork)
  }
  const impacts = Array.from(forks, ([node, fork]): NodeImpact => {
    const [before, after] = [settingsOn(node, c.policy), settingsOn(overridesOf(node), policy)]
    return {
      nodeId: node.id,
      name: node.name,
      before: { ...before, ...figuresOf(node, before) },
      after: { ...after, ...figuresOf(fork, after) },
    }
  })
  return {
    total: {
      before: sumOf(impacts.map(({ before }) => before)),
      after: sumOf(impacts.map(({ after }) => after)),
    },
    nodes: named(impacts.filter(isChanged).sort(byLargestChange)),
    gpusOver: named([...forks.values()].flatMap(({ gpus }) => gpus.flatMap(overOn))),
    residencyImpossible: named([...forks.values()].flatMap(stuckOn)),
    pending: pendingImpact(c, policy, forks, now),
    nextCycle: cycleImpact(c, proposal.apply, now),
  }
}

export interface Over {
  readonly gpuCount: number
  readonly overCommittedMib: Mib
  readonly reserveDeficitMib: Mib
}

/** Returns the current excess over the limits. */
export function overOf(c: Pick<Cluster, 'nodes'>): Over {
  const over = { gpuCount: 0, overCommittedMib: 0, reserveDeficitMib: 0 }
  for (const node of c.nodes.values()) {
    for (const gpu of node.gpus) {
      const [overCommittedMib, reserveDeficitMib] = [overCommitted(gpu), reserveDeficit(gpu)]
      if (overCommittedMib + reserveDeficitMib > 0) over.gpuCount += 1
      over.overCommittedMib += overCommittedMib
      over.reserveDeficitMib += reserveDeficitMib
    }
  }
  return over
}

function figuresOf({ gpus }: Node, { overcommitPercent }: NodeSettings): ImpactFigures {
  return sumOf(
    gpus.map((gpu) => ({
      effectiveSchedulableMib: effectiveSchedulableMib(gpu.physicalMib, overcommitPercent),
      commitLimitMib: gpu.limitMib,
      overCommittedMib: overCommitted(gpu),
      reserveDeficitMib: reserveDeficit(gpu),
    })),
  )
}

function sumOf(all: readonly ImpactFigures[]): ImpactFigures {
  const sum = { effectiveSchedulableMib: 0, commitLimitMib: 0, overCommittedMib: 0, reserveDeficitMib: 0 }
  for (const figures of all) for (const name of FIGURES) sum[name] += figures[name]
  return sum
}

function isChanged({ before, after }: NodeImpact): boolean {
  return (
    FIGURES.some((name) => before[name] !== after[name]) ||
    before.overcommitPercent !== after.overcommitPercent ||
    before.reserveMib !== after.reserveMib
  )
}

/** 1. Larger change of the commit limit, up or down. 2. Node id. */
function byLargestChange(a: NodeImpact, b: NodeImpact): number {
  const change = ({ before, after }: NodeImpact) => Math.abs(after.commitLimitMib - before.commitLimitMib)
  return change(b) - change(a) || byCodeUnits(a.nodeId, b.nodeId)
}

function overOn(gpu: Gpu): readonly GpuOver[] {
  const [overCommittedMib, reserveDeficitMib] = [overCommitted(gpu), reserveDeficit(gpu)]
  if (overCommittedMib + reserveDeficitMib === 0) return []
  const { named: taskIds, count: taskCount } = named(gpu.placements.map(({ task }) => task.spec.id))
  return [{ nodeId: gpu.node.id, gpu: gpu.index, overCommittedMib, reserveDeficitMib, taskIds, taskCount }]
}

/** Each task once, with its worst GPU. */
function stuckOn({ id, gpus }: Node): readonly ResidencyImpossible[] {
  const worst = new Map<Placement['task'], ResidencyImpossible>()
  for (const gpu of gpus) {
    const haveMib = Math.max(0, capacityForSwappableMib(gpu))
    for (const placement of gpu.placements) {
      const { task, noswap } = placement
      const needMib = movableMib(placement)
      if (noswap === 1 || needMib <= haveMib) continue
      if (haveMib >= (worst.get(task)?.haveMib ?? Infinity)) continue
      worst.set(task, { taskId: task.spec.id, nodeId: id, gpu: gpu.index, needMib, haveMib })
    }
  }
  return [...worst.values()]
}

function named<T>(all: readonly T[]): Named<T> {
  return { count: all.length, named: all.slice(0, MAX_NAMED_IN_IMPACT) }
}
