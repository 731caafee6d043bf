/**
 * The class of a pod, P0 to P4.
 * 1. The label headroom.dev/class of its PriorityClass.
 * 2. The name of its PriorityClass, headroom-p0 to headroom-p4.
 * 3. P2.
 * A label that is not a class is ignored, so that nothing of Headroom's blocks an update of a PriorityClass.
 */
import type { Priority } from '../../protocol/units.ts'
import { faulty, type Parsed, quoted, valid } from './field-fault.ts'
import type { ObjectMeta, Pod } from './kubernetes.ts'
import { CLASS_LABEL } from './names.ts'

const CLASS = /^P([0-4])$/
const OWN_CLASS = /^headroom-p([0-4])$/
const DEFAULT_CLASS: Priority = 2

/** @param priorityClass that of the pod; null: it has none, or it no longer exists */
export function classOfPod({ spec: { priorityClassName } }: Pod, priorityClass: ObjectMeta | null): Priority {
  return classNamed(priorityClassName, priorityClass?.labels?.[CLASS_LABEL]) ?? DEFAULT_CLASS
}

/** Null: neither name nor label of the PriorityClass says it. */
export function classNamed(name: string | undefined, label: string | undefined): Priority | null {
  const labelled = classOfLabel(label)
  return (labelled.ok ? labelled.value : null) ?? matched(OWN_CLASS, name)
}

/** Null: the PriorityClass has no label. */
export function classOfLabel(label: string | undefined): Parsed<Priority | null> {
  if (label === undefined) return valid(null)
  const found = matched(CLASS, label)
  return found === null
    ? faulty(`metadata.labels[${CLASS_LABEL}]`, `must be P0, P1, P2, P3 or P4, not ${quoted(label)}`)
    : valid(found)
}

function matched(pattern: RegExp, text = ''): Priority | null {
  const digit = pattern.exec(text)?.[1]
  return digit === undefined ? null : (Number(digit) as Priority)
}
