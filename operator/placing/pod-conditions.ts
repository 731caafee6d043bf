/**
 * The condition headroom.dev/VRAMAdmitted of pods. It is written when its reason changes, and at most every
 * half minute when only its message does.
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
  if (!hasMoved) return admission('Bound', `Its VRAM is on ${nodeName}.`)
  return where === null ? null : admission('SwappedIn', `Its VRAM is on the GPU of ${nodeName} again.`)
}

const MOVED = ['SwappedOut', 'SwappedIn']
const REWRITE_AFTER_MS: DurationMs = 30_000
/** A pod that starts at once is reported once, when it is bound. */
export const WAITING_AFTER_MS: DurationMs = 3_000
export const RESERVED_AFTER_MS: DurationMs = 30_000
const MAX_MESSAGE = 1024

export class PodConditions {
  readonly #api: KubeApi
  readonly #now: () => Instant
  /** Written conditions, by UID. */
  readonly #written = new Map<string, { readonly admission: Admission; readonly at: Instant }>()
  /** Since when pods without a condition wait, by UID. */
  readonly #seen = new Map<string, Instant>()

  constructor(api: KubeApi, now: () => Instant) {
    this.#api = api
    this.#now = now
  }

  /**
   * Whether the condition of a pod without a node is due: the first after it has waited this long, and others
   * at most every half minute.
   */
  isDue({ metadata: { uid = '' } }: Pod, afterMs: DurationMs): boolean {
    const now = this.#now()
    const last = this.#written.get(uid)
    if (last !== undefined) return now - last.at >= REWRITE_AFTER_MS
    const since = this.#seen.get(uid) ?? now
    this.#seen.set(uid, since)
    return now - since >= afterMs
  }

  /** Returns what of it is new. */
  async write(pod: Pod, wanted: Admission): Promise<'reason' | 'message' | null> {
    const { uid = '', namespace = '', name = '' } = pod.metadata
    const admission = { ...wanted, message: wanted.message.slice(0, MAX_MESSAGE) }
    const conditions = pod.status?.conditions ?? []
    const place = conditions.findIndex(({ type }) => type === ADMITTED_CONDITION)
    const found = conditions[place]
    const last = this.#written.get(uid)
    const isOutOfDate = !isSame(last?.admission ?? found, admission)
    const hasNewReason = (last?.admission ?? found)?.reason !== admission.reason
    if (!isOutOfDate || (!hasNewReason && this.#now() - (last?.at ?? 0) < REWRITE_AFTER_MS)) return null
    this.#written.set(uid, { admission, at: this.#now() })
    this.#seen.delete(uid)
    try {
      const body = steps(pod, place, { ...admission, ...this.#timeOf(found, admission) })
      await this.#api.patch(PODS, { namespace, name }, { type: 'json', body }, { subresource: 'status' })
      return hasNewReason ? 'reason' : 'message'
    } catch (error) {
      // Another writer was faster, or the pod is gone: the next look decides again.
      this.#written.delete(uid)
      if (error instanceof KubeError && [NOT_FOUND, 422].includes(error.code)) return null
      throw error
    }
  }

  /** Forgets pods that were deleted before they ended. */
  forgetGone(isGone: (uid: string) => boolean): void {
    for (const uid of [...this.#written.keys(), ...this.#seen.keys()]) if (isGone(uid)) this.forget(uid)
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
  if (status?.conditions !== undefined) return [own, { op: 'add', path: '/status/conditions/-', value }]
  // Replaces what another writer may have added since the copy.
  const seen: JsonPatchStep = {
    op: 'test',
    path: '/metadata/resourceVersion',
    value: metadata.resourceVersion,
  }
  return status === undefined
    ? [own, seen, { op: 'add', path: '/status', value: { conditions: [value] } }]
    : [own, seen, { op: 'add', path: '/status/conditions', value: [value] }]
}

function isSame(a: Partial<Admission> | PodCondition | undefined, b: Admission): boolean {
  return a?.status === b.status && a.reason === b.reason && a.message === b.message
}
