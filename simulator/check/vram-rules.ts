/** What may be in VRAM, and what may be committed (semantics section 1). */
import type { Event } from '../../controller/model/event.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import type { Observed } from './observed.ts'
import type { ShadowNode, ShadowPlacement } from './shadow.ts'

/**
 * `resident_within_capacity`: by the controller's account, Σ resident ≤ P − R − F whenever bytes are added to
 * VRAM by a placement, swap-in or growth. A reserve above what is resident is not a violation; adding
 * bytes then is.
 */
export function residentWithinCapacity({ shadow, report }: RuleContext): AlwaysRule {
  return {
    after(event) {
      const { taskId } = event
      const placement = taskId === null ? null : (shadow.tasks.get(taskId)?.placement ?? null)
      if (taskId === null || placement === null || !comesIn(event, placement.residency)) return
      const node = shadow.nodes.get(placement.nodeId)
      if (node === undefined) return
      for (const gpu of placement.gpus) {
        const mib = shadow.residentMib(node, gpu)
        const capacityMib = shadow.capacityMib(node)
        if (mib > capacityMib)
          report(`GPU ${gpu} has ${mib} MiB resident, the maximum is ${capacityMib} MiB`, {
            taskId,
            nodeId: node.id,
          })
      }
    },
  }
}

function comesIn({ kind, data }: Event, residency: string): boolean {
  if (kind === 'growth_granted') return residency !== 'swapped_out'
  // A reported attempt is already there.
  return (
    (kind === 'task_placed' && data['when'] !== 'reported') ||
    (kind === 'task_residency' && data['residency'] === 'swapping_in')
  )
}

/**
 * `reserve_kept`: on the servers, tasks never grow into the reserve. What was resident before the reserve was
 * raised, or before other processes took VRAM, may stay.
 */
export function reserveKept({ shadow, observed, report }: RuleContext): AlwaysRule {
  const lastMib = new Map<string, readonly Mib[]>()
  return {
    before({ kind }) {
      if (kind !== 'config_changed' && kind !== 'node_config_changed') return
      for (const node of shadow.nodes.values()) lastMib.set(node.id, inVramMib(observed, node))
    },
    afterStep(nodeIds) {
      for (const nodeId of nodeIds) {
        const node = shadow.nodes.get(nodeId)
        if (node === undefined) continue
        const before = lastMib.get(nodeId) ?? []
        const now = inVramMib(observed, node)
        lastMib.set(nodeId, now)
        if (observed.faults?.isDisturbed(nodeId) === true) continue
        const reserveMib = shadow.reserveMib(node)
        for (const [gpu, mib] of now.entries()) {
          const leftMib = node.physicalMib - mib - (observed.foreignMib?.(nodeId, gpu) ?? 0)
          if (mib > (before[gpu] ?? 0) && leftMib < reserveMib)
            report(`GPU ${gpu} has ${leftMib} MiB left, the reserve is ${reserveMib} MiB`, { nodeId })
        }
      }
    },
  }
}

/** By GPU, as the server counts it. */
function inVramMib(observed: Observed, { id, gpuCount }: ShadowNode): Mib[] {
  const inVram = Array.from({ length: gpuCount }, () => 0)
  for (const { gpus, residentMib } of observed.attemptsOn(id).values())
    for (const gpu of gpus) inVram[gpu] = (inVram[gpu] ?? 0) + residentMib
  return inVram
}

interface Step {
  readonly at: Instant
  readonly mib: Mib
}

/**
 * `commit_limit`: no new swappable or exclusive task beyond L; it does not apply to noswap tasks
 * (specification 2.3). A task that starts after a swap was admitted when its VRAM was reserved; later changes
 * (a lower limit, a growth or a noswap placement, which may exceed L) do not revoke that. Its admission is
 * not an event, so its whole wait is tolerated.
 */
export function commitLimit({ shadow, observed, report }: RuleContext): AlwaysRule {
  const limits = new Map<ShadowNode, Step[]>()
  /** By GPU: growths and noswap placements. */
  const beyond = new Map<string, Step[]>()
  const noteBeyond = (at: Instant, mib: Mib, { nodeId, gpus }: ShadowPlacement): void => {
    for (const gpu of gpus) {
      const key = `${nodeId}/${gpu}`
      const steps = beyond.get(key) ?? []
      steps.push({ at, mib })
      beyond.set(key, steps)
    }
  }
  const noteLimits = (at: Instant): void => {
    for (const node of shadow.nodes.values()) {
      const steps = limits.get(node) ?? []
      const mib = shadow.limitMib(node)
      if (steps.at(-1)?.mib !== mib) limits.set(node, [...steps, { at, mib }])
    }
  }
  noteLimits(0)
  return {
    before({ kind, taskId, at, data }) {
      const placement = kind === 'growth_granted' ? (shadow.tasks.get(taskId ?? '')?.placement ?? null) : null
      if (placement === null) return
      noteBeyond(at, (data['demand_mib'] as Mib) - placement.demandMib, placement)
    },
    after({ kind, taskId, at, data }) {
      if (kind === 'config_changed' || kind === 'node_config_changed') noteLimits(at)
      if (kind !== 'task_placed' || taskId === null) return
      const task = shadow.tasks.get(taskId)
      const placement = task?.placement ?? null
      const node = shadow.nodes.get(placement?.nodeId ?? '')
      if (task === undefined || placement === null || node === undefined) return
      const isReported = data['when'] === 'reported'
      if (isReported || (task.request.noswap === 1 && task.request.gpuMode === 'shared'))
        return noteBeyond(at, placement.demandMib, placement)
      const isAfterSwap = data['when'] === 'after_swap'
      const limitMib = isAfterSwap
        ? highestSince(limits.get(node) ?? [], task.submittedAt)
        : shadow.limitMib(node)
      for (const gpu of placement.gpus) {
        const grantedMib = isAfterSwap ? sumSince(beyond.get(`${node.id}/${gpu}`) ?? [], task.submittedAt) : 0
        const mib = shadow.placedMib(node, gpu)
        if (mib - grantedMib > limitMib)
          report(`${mib} MiB are committed on GPU ${gpu}, the limit is ${limitMib} MiB`, {
            taskId,
            nodeId: node.id,
          })
      }
    },
    setBack() {
      noteLimits(observed.now())
    },
  }
}

/** The highest of the values at that instant or later. */
function highestSince(steps: readonly Step[], since: Instant): Mib {
  const before = steps.findLastIndex((step) => step.at < since)
  return steps.slice(Math.max(0, before)).reduce((most, { mib }) => Math.max(most, mib), 0)
}

function sumSince(steps: readonly Step[], since: Instant): Mib {
  return steps.reduce((sum, { at, mib }) => (at >= since ? sum + mib : sum), 0)
}
