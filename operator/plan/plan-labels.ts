/** Classes of PriorityClasses and groups of namespaces, as far as the list of objects has them. */
import type { Priority } from '../../protocol/units.ts'
import { faultText } from '../contract/field-fault.ts'
import { groupOf } from '../contract/group.ts'
import { CLASS_LABEL, GROUP_LABEL } from '../contract/names.ts'
import { classNamed, classOfLabel } from '../contract/pod-class.ts'
import { textAt } from './plan-fields.ts'

export interface ClusterLabels {
  /** By the name of the PriorityClass; those that name no class are left out. */
  readonly classes: ReadonlyMap<string, Priority>
  /** By namespace; null: the list has no namespaces, so that groups are not known. */
  readonly groups: ReadonlyMap<string, string | null> | null
  readonly notes: readonly string[]
}

export function clusterLabels(objects: readonly unknown[]): ClusterLabels {
  const classes = new Map<string, Priority>()
  const groups = new Map<string, string | null>()
  const notes: string[] = []
  for (const object of objects) {
    const [kind, name = ''] = [textAt(object, 'kind'), textAt(object, 'metadata', 'name')]
    if (kind === 'Namespace') groups.set(name, groupLabelOf(object) ?? null)
    if (kind !== 'PriorityClass') continue
    const label = textAt(object, 'metadata', 'labels', CLASS_LABEL)
    const parsed = classOfLabel(label)
    if (!parsed.ok) notes.push(`Ignored: PriorityClass ${name}: ${parsed.faults.map(faultText).join('; ')}.`)
    const priority = classNamed(name, label)
    if (priority !== null) classes.set(name, priority)
  }
  return { classes, groups: areNamespacesKnown(objects) ? groups : null, notes }
}

/** Without namespaces, pods of a group cannot be told from others. */
export function areNamespacesKnown(objects: readonly unknown[]): boolean {
  return objects.some((object) => textAt(object, 'kind') === 'Namespace')
}

/** Undefined: it has no label. */
export function groupLabelOf(object: unknown): string | null | undefined {
  const label = textAt(object, 'metadata', 'labels', GROUP_LABEL)
  return label === undefined ? undefined : groupOf({ labels: { [GROUP_LABEL]: label } })
}
