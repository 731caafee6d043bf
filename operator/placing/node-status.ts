/** What the operator reports about a node in its GPUNode. */
import { effectiveSchedulableMib } from '../../controller/model/vram.ts'
import type { Mib } from '../../protocol/units.ts'
import { NODE_LABELS } from '../contract/names.ts'
import type { NodeOvercommit } from '../contract/overcommit.ts'
import type { Condition, GPUNodeStatus, GpuStatus } from '../contract/policies.ts'
import type { KubeObject } from '../ports/kube-api.ts'
import { type NodeGpus, REPORTED } from './node-gpus.ts'

export interface NodeFacts extends NodeGpus {
  /** False: the node is gone, or its GPUs no longer belong to Headroom. */
  readonly isNode: boolean
  readonly overcommit: NodeOvercommit
  readonly isOut: (podUid: string) => boolean
  /** Generation of the GPUNode. */
  readonly generation: number
  /** An agent has reported within the last seconds. */
  readonly hasAgent: boolean
  /** ISO 8601, whole seconds. */
  readonly now: string
}

/** Leaves the claims as they are, and what they sum up to follows from them. */
export function reportedStatus(status: GPUNodeStatus, facts: NodeFacts): GPUNodeStatus {
  const { percent, source } = facts.overcommit
  const { claims = [] } = status
  const gpus = facts.gpus.map(({ uuid, model, vramMib }): GpuStatus => {
    const here = claims.filter(({ gpuUuids }) => gpuUuids.includes(uuid))
    const committedMib = sum(here, ({ vramMib: mib }) => mib)
    const swappedOutMib = sum(here, (claim) => (facts.isOut(claim.podUid) ? claim.vramMib : 0))
    const effectiveMib = effectiveSchedulableMib(vramMib, percent)
    return {
      uuid,
      ...(model === '' ? {} : { model }),
      ...{ physicalMib: vramMib, effectiveMib, committedMib, residentMib: committedMib - swappedOutMib },
      ...{ foreignMib: facts.foreignMib(uuid), swappedOutMib },
    }
  })
  return {
    ...status,
    observedGeneration: facts.generation,
    overcommit: { percent, source },
    gpuCount: gpus.length,
    physicalMib: sum(gpus, ({ physicalMib }) => physicalMib),
    effectiveMib: sum(gpus, ({ effectiveMib }) => effectiveMib),
    committedMib: sum(gpus, ({ committedMib }) => committedMib),
    swappedOutMib: sum(gpus, ({ swappedOutMib }) => swappedOutMib),
    gpus,
    conditions: [...conditionsOf(status.conditions ?? [], facts)],
  }
}

const NO_NODE = `No node of this name has the label ${NODE_LABELS.enabled}: "true".`
const NO_GPUS = 'Neither an agent nor the annotation of the node lists GPUs.'
const FINDINGS = ['InvalidOverride', 'OverrideConflict'] as const

/** Whether pods of the node can be swapped. */
const AGENT = 'AgentReady'

/** Returns whether the last report came from an agent. */
export function hadAgent(gpuNode: KubeObject | null): boolean {
  const { conditions = [] } = (gpuNode?.['status'] ?? {}) as GPUNodeStatus
  return conditions.some(({ type, status }) => type === AGENT && status === 'True')
}

type Wanted = Omit<Condition, 'lastTransitionTime'>

function conditionsOf(before: readonly Condition[], facts: NodeFacts): readonly Condition[] {
  const { overcommit, hasAgent, now } = facts
  const wanted: Wanted[] = [readiness(facts)]
  const isAgentKnown = before.some(({ type }) => type === AGENT)
  if (hasAgent || isAgentKnown || overcommit.percent > 0) wanted.push(agentReadiness(hasAgent, overcommit))
  for (const type of FINDINGS) {
    const found = overcommit.findings.find((each) => each.type === type)
    if (found !== undefined) wanted.push({ type, status: 'True', reason: type, message: found.message })
    // One that never held is not reported.
    else if (before.some((each) => each.type === type))
      wanted.push({ type, status: 'False', reason: 'Resolved', message: 'The override is valid.' })
  }
  const { generation: observedGeneration } = facts
  return wanted.map((each) => datedCondition({ ...each, observedGeneration }, before, now))
}

/** Conditions that have turned bad. */
export function newFaults(before: GPUNodeStatus, after: GPUNodeStatus): readonly Condition[] {
  const isFinding = (type: string): boolean => (FINDINGS as readonly string[]).includes(type)
  return (after.conditions ?? []).filter((condition) => {
    const was = before.conditions?.find(({ type }) => type === condition.type)
    const isBad = isFinding(condition.type) === (condition.status === 'True')
    // A new node has no agent for a moment.
    return isBad && (was === undefined ? isFinding(condition.type) : was.status !== condition.status)
  })
}

/** The time stays as long as the status does. */
export function datedCondition(wanted: Wanted, before: readonly Condition[], now: string): Condition {
  const was = before.find(({ type }) => type === wanted.type)
  return { ...wanted, lastTransitionTime: was?.status === wanted.status ? was.lastTransitionTime : now }
}

function agentReadiness(hasAgent: boolean, { percent }: NodeOvercommit): Wanted {
  if (hasAgent)
    return { type: AGENT, status: 'True', reason: 'Reporting', message: 'The agent reports each second.' }
  const effect = percent > 0 ? `, and the overcommit of ${percent}% has no effect` : ''
  const message = `No agent reports: no pod is swapped${effect}.`
  return { type: AGENT, status: 'False', reason: 'NoAgent', message }
}

function readiness({ isNode, fault, gpus, areReported }: NodeFacts): Wanted {
  const type = 'Ready'
  if (!isNode) return { type, status: 'False', reason: 'NoNode', message: NO_NODE }
  if (fault !== null) return { type, status: 'False', reason: 'InvalidGPUs', message: fault }
  return gpus.length === 0
    ? { type, status: 'False', reason: areReported ? REPORTED : 'NoGPUs', message: NO_GPUS }
    : {
        ...{ type, status: 'True', reason: areReported ? REPORTED : 'GPUsDeclared' },
        message: `${gpus.length === 1 ? 'Its GPU is' : `Its ${gpus.length} GPUs are`} available to pods.`,
      }
}

function sum<T>(items: readonly T[], mibOf: (item: T) => Mib): Mib {
  return items.reduce((total, item) => total + mibOf(item), 0)
}
