/** What a pod asks of Headroom: its label and annotations (specification 2.5), checked. */
import { MAX_CONTAINERS } from '../../protocol/agent-messages.ts'
import { MAX_GPUS, MAX_VRAM_MIB } from '../../protocol/limits.ts'
import type { Mib, NoSwap } from '../../protocol/units.ts'
import { annotationPath, faulty, type FieldFault, type Parsed, quoted, valid } from './field-fault.ts'
import { groupOf } from './group.ts'
import type { ObjectMeta, Pod, PodSpec } from './kubernetes.ts'
import { POD_ANNOTATIONS, RUNTIME_LABEL, RUNTIME_VALUE } from './names.ts'
import { quantityMib } from './quantity.ts'

export interface PodRequest {
  /** VRAM on each GPU. */
  readonly vramMib: Mib
  /** GPUs, all on one node. */
  readonly gpus: number
  readonly isSwappable: boolean
  /** Null: not declared, and requests wake it. */
  readonly wakesOnRequest: boolean | null
  readonly staysInVram: boolean
  /** Names of the containers that get the GPUs. */
  readonly containers: readonly string[]
  readonly group: string | null
}

/** Whether Headroom handles the pod; `warning` when the label is probably a misspelling. */
export function runtimeOf({ labels = {} }: ObjectMeta): {
  readonly isOurs: boolean
  readonly warning: string | null
} {
  const value = labels[RUNTIME_LABEL]
  if (value === undefined || value === RUNTIME_VALUE)
    return { isOurs: value === RUNTIME_VALUE, warning: null }
  const warning = isNear(value, RUNTIME_VALUE)
    ? `label ${RUNTIME_LABEL}: ${quoted(value)} is not handled by Headroom; did you mean "${RUNTIME_VALUE}"?`
    : null
  return { isOurs: false, warning }
}

/** Checks all annotations, so that one answer names every fault. */
export function podRequestOf({ metadata, spec }: Pod): Parsed<PodRequest> {
  const annotations = metadata.annotations ?? {}
  const vram = podVram(annotations[POD_ANNOTATIONS.podVram])
  const gpus = gpuCount(annotations[POD_ANNOTATIONS.gpuCount])
  const swap = trueOrFalse(annotations, POD_ANNOTATIONS.swapFromVram)
  const wake = trueOrFalse(annotations, POD_ANNOTATIONS.wakeOnRequest)
  const keep = trueOrFalse(annotations, POD_ANNOTATIONS.keepInVram)
  const containers = containerNames(annotations[POD_ANNOTATIONS.containers], spec)
  const parts = [vram, gpus, swap, wake, keep, containers]
  if (!vram.ok || !gpus.ok || !swap.ok || !wake.ok || !keep.ok || !containers.ok)
    return { ok: false, faults: parts.flatMap((part) => (part.ok ? [] : part.faults)) }
  return valid({
    vramMib: vram.value,
    gpus: gpus.value,
    isSwappable: swap.value ?? true,
    wakesOnRequest: wake.value,
    staysInVram: keep.value ?? false,
    containers: containers.value,
    group: groupOf(metadata),
  })
}

/** Returns 1 for a pod that stays in VRAM: it asks for it, or admission has found why it must. */
export function noswapOf({ metadata }: Pod, { isSwappable }: PodRequest): NoSwap {
  return isSwappable && metadata.annotations?.[POD_ANNOTATIONS.notSwappable] === undefined ? 0 : 1
}

/** Admission has read these and written others from them: a change would contradict what runs. */
export const FIXED_ANNOTATIONS = [
  POD_ANNOTATIONS.podVram,
  POD_ANNOTATIONS.gpuCount,
  POD_ANNOTATIONS.swapFromVram,
  POD_ANNOTATIONS.containers,
  POD_ANNOTATIONS.gpuUuids,
  POD_ANNOTATIONS.notSwappable,
  POD_ANNOTATIONS.memoryRaised,
]

/** Changes of a pod that was admitted which its owner may not make. */
export function forbiddenChanges(before: ObjectMeta, after: ObjectMeta): readonly FieldFault[] {
  const faults: FieldFault[] = FIXED_ANNOTATIONS.flatMap((name): FieldFault[] => {
    const was = before.annotations?.[name]
    const is = after.annotations?.[name]
    if (was === is) return []
    const message = is === undefined ? 'must stay set' : 'must not change after the pod was created'
    return [{ path: annotationPath(name), message: `${message}; delete the pod and create it again` }]
  })
  const annotations = after.annotations ?? {}
  for (const name of [POD_ANNOTATIONS.wakeOnRequest, POD_ANNOTATIONS.keepInVram]) {
    const set = trueOrFalse(annotations, name)
    if (!set.ok && before.annotations?.[name] !== annotations[name]) faults.push(...set.faults)
  }
  const label = before.labels?.[RUNTIME_LABEL]
  if (label === after.labels?.[RUNTIME_LABEL]) return faults
  return [...faults, { path: `metadata.labels[${RUNTIME_LABEL}]`, message: 'must not change' }]
}

function podVram(text: string | undefined): Parsed<Mib> {
  const path = annotationPath(POD_ANNOTATIONS.podVram)
  const expected = `must be a quantity above 0 and of at most ${MAX_VRAM_MIB / 1024}Gi, such as "8Gi"`
  if (text === undefined) return faulty(path, `is required: ${expected}`)
  const mib = quantityMib(text)
  return mib === null || mib <= 0 || mib > MAX_VRAM_MIB
    ? faulty(path, `${expected}, not ${quoted(text)}`)
    : valid(mib)
}

function gpuCount(text: string | undefined): Parsed<number> {
  if (text === undefined) return valid(1)
  return /^[1-9]\d?$/.test(text) && Number(text) <= MAX_GPUS
    ? valid(Number(text))
    : faulty(
        annotationPath(POD_ANNOTATIONS.gpuCount),
        `must be a whole number from 1 to ${MAX_GPUS}, not ${quoted(text)}`,
      )
}

/** Null when it is not set. */
function trueOrFalse(annotations: Readonly<Record<string, string>>, name: string): Parsed<boolean | null> {
  const text = annotations[name]
  if (text === undefined) return valid(null)
  return text === 'true' || text === 'false'
    ? valid(text === 'true')
    : faulty(annotationPath(name), `must be "true" or "false", not ${quoted(text)}`)
}

function containerNames(
  text: string | undefined,
  { containers, initContainers = [] }: PodSpec,
): Parsed<readonly string[]> {
  const names = containers.map(({ name }) => name)
  const path = annotationPath(POD_ANNOTATIONS.containers)
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const count = text === undefined ? names.length + sidecars.length : text.split(',').length
  if (count > MAX_CONTAINERS)
    return faulty(
      path,
      `must name at most ${MAX_CONTAINERS} containers, not ${count}; without it all containers get the GPUs`,
    )
  if (text === undefined) return valid(names)
  const chosen = text.split(',').map((name) => name.trim())
  const unknown = chosen.find((name) => !names.includes(name))
  return unknown === undefined
    ? valid(chosen)
    : faulty(path, `names ${quoted(unknown)}, but the containers are ${names.join(', ')}`)
}

/** Returns true if at most two letters differ, or only the case. */
function isNear(value: string, word: string): boolean {
  return value.length <= 2 * word.length && distance(value.toLowerCase(), word) <= 2
}

/** The number of letters to insert, remove or replace (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
