/**
 * The condition headroom.dev/VRAMAdmitted of pods. It is written when its reason changes, and at most every
 * half minute when only its message does. The node on which VRAM is reserved is nominated in the same write:
 * the scheduler tries that node alone, and all nodes only if the pod does not fit there.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Pod, PodCondition } from '../contract/kubernetes.ts'
import { ADMITTED_CONDITION } from '../contract/names.ts'
import { type JsonPatchStep, type KubeApi, KubeError, NOT_FOUND, PODS } from '../ports/kube-api.ts'

export interface Admission {
  readonly status: 'True' | 'False'
  /** CamelCase. */
  readonly reason: string
  readonly message: string
  /** The node that the scheduler tries first; empty: none. Absent: the write does not change it. */
  readonly nominated?: string
}

/** Of a pod that starts on the node, before and after it is bound. */
export function reservedAdmission(nodeName: string): Admission {
  return {
    status: 'True',
    reason: 'Reserved',
    message: `VRAM is reserved on ${nodeName}.`,
    nominated: nodeName,
  }
}

/** The scheduler reserves nothing for a pod that waits. */
export function waitingAdmission(why: string): Admission {
  return { status: 'False', reason: 'WaitingForVRAM', message: why, nominated: '' }
}

/**
 * Returns the condition of a bound pod. Only a pod that has been swapped out returns. While its place is
 * unknown, its last condition stays.
 */
export function boundAdmission({ status, spec }: Pod, where: 'in' | 'out' | null): Admission | null {
  const { nodeName = '' } = spec
  const admission = (reason: string, message: string): Admission => ({ status: 'True', reason, message })
  const before = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)?.reason ?? ''
  const hasMoved = MOVED.includes(before)
  if (where === 'out')
    return admission(
      'SwappedOut',
      `Its VRAM is in the memory of ${nodeName}: it was idle, and others need it.`,
    )
  if (!hasMoved) {
    // The binding has ended its nomination.
    const { nominated: _, ...bound } = reservedAdmission(nodeName)
    return bound
  }
  return where === null ? null : admission('SwappedIn', `Its VRAM is on the GPU of ${nodeName} again.`)
}

const MOVED = ['SwappedOut', 'SwappedIn']
const REWRITE_AFTER_MS: DurationMs = 30_000
/** A pod that starts at once is reported once, when VRAM is reserved. */
export const WAITING_AFTER_MS: DurationMs = 3_000
export const RESERVED_AFTER_MS: DurationMs = 30_000
const MAX_MESSAGE = 1024

export class PodConditions {
  readonly #api: KubeApi
  readonly #now: () => Instant
  /** Written conditions, by UID. */
  readonly #written = new Map<string, { readonly admission: Admission; readonly at: Instant }>()
  /** Pods whose condition is being written, by UID. */
  readonly #writing = new Set<string>()
  /** Since when pods without a condition wait, by UID. */
  readonly #seen = new Map<string, Instant>()

  constructor(api: KubeApi, now: () => Instant) {
    this.#api = api
    this.#now = now
  }

  /**
   * Whether the condition of a pod without a node is due: the first with this status after it has waited this
   * long, and others at most every half minute.
   */
  isDue({ metadata: { uid = '' } }: Pod, status: Admission['status'], afterMs: DurationMs): boolean {
    const now = this.#now()
    const last = this.#written.get(uid)
    if (last?.admission.status === status) return now - last.at >= REWRITE_AFTER_MS
    const since = this.#seen.get(uid) ?? now
    this.#seen.set(uid, since)
    return now - since >= afterMs
  }

  /** Whether `write` would write it now. A write in progress is awaited by the next look. */
  isNews(pod: Pod, admission: Admission): boolean {
    const { uid = '' } = pod.metadata
    if (this.#writing.has(uid)) return false
    const last = this.#written.get(uid)
    const before = last?.admission ?? conditionOf(pod)
    const nominatedNow = last?.admission.nominated ?? pod.status?.nominatedNodeName ?? ''
    if (before?.reason !== admission.reason || (admission.nominated ?? nominatedNow) !== nominatedNow)
      return true
    return !isSame(before, admission) && this.#now() - (last?.at ?? 0) >= REWRITE_AFTER_MS
  }

  /** Returns what of it is new. */
  async write(pod: Pod, wanted: Admission): Promise<'reason' | 'message' | null> {
    if (!this.isNews(pod, wanted)) return null
    const { uid = '', namespace = '', name = '' } = pod.metadata
    const admission = { ...wanted, message: wanted.message.slice(0, MAX_MESSAGE) }
    const { nominated } = admission
    const place = (pod.status?.conditions ?? []).findIndex(({ type }) => type === ADMITTED_CONDITION)
    const found = conditionOf(pod)
    const hasNewReason = (this.#written.get(uid)?.admission ?? found)?.reason !== admission.reason
    this.#written.set(uid, { admission, at: this.#now() })
    this.#seen.delete(uid)
    this.#writing.add(uid)
    try {
      const { status, reason, message } = admission
      const condition = { status, reason, message, ...this.#timeOf(found, admission) }
      const nomination = nominated === undefined ? [] : [nominationStep(nominated)]
      const body = [...steps(pod, place, condition), ...nomination]
      await this.#api.patch(PODS, { namespace, name }, { type: 'json', body }, { subresource: 'status' })
      return hasNewReason ? 'reason' : 'message'
    } catch (error) {
      // Another writer was faster, or the pod is gone: the next look decides again.
      this.#written.delete(uid)
      if (error instanceof KubeError && [NOT_FOUND, 422].includes(error.code)) return null
      throw error
    } finally {
      this.#writing.delete(uid)
    }
  }

  forget(uid: string): void {
    this.#written.delete(uid)
    this.#seen.delete(uid)
  }

  #timeOf(found: PodCondition | undefined, { status }: Admission) {
    const now = new Date(this.#now()).toISOString().replace(/\.\d+Z$/, 'Z')
    return { lastTransitionTime: found?.status === status ? (found.lastTransitionTime ?? now) : now }
  }
}

function steps(
  { metadata, status }: Pod,
  place: number,
  condition: Omit<PodCondition, 'type'>,
): readonly JsonPatchStep[] {
  const value = { type: ADMITTED_CONDITION, ...condition }
  const own: JsonPatchStep = { op: 'test', path: '/metadata/uid', value: metadata.uid }
  if (place !== -1) {
    const path = `/status/conditions/${place}`
    return [
      own,
      { op: 'test', path: `${path}/type`, value: ADMITTED_CONDITION },
      { op: 'replace', path, value },
    ]
  }
  if (status === undefined) return [own, { op: 'add', path: '/status', value: { conditions: [value] } }]
  if (status.conditions === undefined) return [own, { op: 'add', path: '/status/conditions', value: [value] }]
  // The pod has no such condition only as long as this is its version.
  const path = '/metadata/resourceVersion'
  const version: JsonPatchStep = { op: 'test', path, value: metadata.resourceVersion }
  return [own, version, { op: 'add', path: '/status/conditions/-', value }]
}

/** After the others: the pod has a status then. */
function nominationStep(value: string): JsonPatchStep {
  return { op: 'add', path: '/status/nominatedNodeName', value }
}

function conditionOf({ status }: Pod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
}

function isSame(a: Partial<Admission> | PodCondition | undefined, b: Admission): boolean {
  return a?.status === b.status && a.reason === b.reason && a.message === b.message.slice(0, MAX_MESSAGE)
}
