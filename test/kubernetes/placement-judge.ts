/**
 * Judges the history of a cluster by the stored pods alone. It knows nothing of claims, and uses no code of
 * the operator but the names of annotations. When a pod is bound to a GPU (specification 2.3):
 * - If it can be swapped, all pods of the GPU have at most its effective VRAM.
 * - Those that cannot be swapped and the largest that can have at most its physical VRAM.
 */
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import type { HistoryEvent } from '../support/kubernetes/history.ts'

export interface GpuLimits {
  readonly node: string
  readonly physicalMib: number
  readonly percent: number
}

export interface HeldVram {
  readonly pod: string
  readonly mib: number
  readonly isSwappable: boolean
}

export interface Judgement {
  /** Versions at which a pod was bound to a GPU without room for it, with the pods of that GPU. */
  readonly overbooked: readonly string[]
  /** Pods that got GPUs. */
  readonly bound: number
  /** By uid, whether and how it was seen to end. */
  readonly ends: ReadonlyMap<string, string>
}

const PODS = '/registry/pods/'

/** @param gpus by UUID */
export function judge(history: readonly HistoryEvent[], gpus: ReadonlyMap<string, GpuLimits>): Judgement {
  const held = new Map<string, Map<string, HeldVram>>([...gpus.keys()].map((uuid) => [uuid, new Map()]))
  const uids = new Map<string, string>()
  const bound = new Set<string>()
  const ends = new Map<string, string>()
  const overbooked: string[] = []
  for (const { revision, key, value } of history) {
    if (!key.startsWith(PODS)) continue
    const pod = value as Pod | null
    const before = uids.get(key)
    const uid = pod?.metadata.uid ?? before ?? ''
    if (before !== undefined && before !== uid) leave(held, before)
    uids.set(key, uid)
    const had = leave(held, uid)
    const phase = pod?.status?.phase ?? 'Pending'
    if (pod === null) ends.set(uid, ends.get(uid) ?? 'deleted')
    else if (phase === 'Succeeded' || phase === 'Failed') ends.set(uid, phase)
    else
      for (const uuid of gpuUuidsOf(pod)) {
        const fault = enter({ uuid, uid, pod, limits: gpus.get(uuid), holders: held.get(uuid) })
        bound.add(uid)
        if (fault !== null && !had.includes(uuid)) overbooked.push(`version ${revision}: ${fault}`)
      }
  }
  return { overbooked, bound: bound.size, ends }
}

/** Whether the GPU has room for the pod next to those that hold it. */
export function hasRoom(
  { physicalMib, percent }: GpuLimits,
  holders: Iterable<HeldVram>,
  { mib, isSwappable }: Pick<HeldVram, 'mib' | 'isSwappable'>,
): boolean {
  const all = [...holders, { mib, isSwappable }]
  const fixed = sum(all.filter((each) => !each.isSwappable))
  const largest = Math.max(0, ...all.filter((each) => each.isSwappable).map((each) => each.mib))
  const isWithinPercent = !isSwappable || sum(all) <= effectiveMib(physicalMib, percent)
  return isWithinPercent && fixed + largest <= physicalMib
}

export function vramOf(pod: Pod): Omit<HeldVram, 'pod'> {
  const annotations = pod.metadata.annotations ?? {}
  const [, gib = ''] = /^(\d+)Gi$/.exec(annotations[POD_ANNOTATIONS.podVram] ?? '') ?? []
  if (gib === '') throw new Error(`${pod.metadata.name} has VRAM that the judge cannot read`)
  return { mib: Number(gib) * 1024, isSwappable: annotations[POD_ANNOTATIONS.swapFromVram] !== 'false' }
}

export function gpuUuidsOf({ metadata, spec }: Pod): readonly string[] {
  const text = metadata.annotations?.[POD_ANNOTATIONS.gpuUuids] ?? ''
  return spec.nodeName === undefined || text === '' ? [] : text.split(',')
}

interface Entry {
  readonly uuid: string
  readonly uid: string
  readonly pod: Pod
  readonly limits: GpuLimits | undefined
  readonly holders: Map<string, HeldVram> | undefined
}

function enter({ uuid, uid, pod, limits, holders }: Entry): string | null {
  const { name = '' } = pod.metadata
  if (limits === undefined || holders === undefined)
    return `${name} has the GPU ${uuid}, which does not exist`
  if (limits.node !== pod.spec.nodeName) return `${name} is on ${pod.spec.nodeName}, and has ${uuid}`
  const isRoom = hasRoom(limits, holders.values(), vramOf(pod))
  holders.set(uid, { pod: name, ...vramOf(pod) })
  if (isRoom) return null
  const all = [...holders.values()].map(({ pod: holder, mib }) => `${holder} ${mib} MiB`)
  return `${name} was bound to ${uuid}: ${all.join(', ')}`
}

/** Returns the GPUs that the pod had. */
function leave(held: ReadonlyMap<string, Map<string, HeldVram>>, uid: string): readonly string[] {
  return [...held].flatMap(([uuid, holders]) => (holders.delete(uid) ? [uuid] : []))
}

function effectiveMib(physicalMib: number, percent: number): number {
  return Math.floor((physicalMib * (100 + percent)) / 100)
}

function sum(all: readonly Pick<HeldVram, 'mib'>[]): number {
  return all.reduce((total, { mib }) => total + mib, 0)
}
