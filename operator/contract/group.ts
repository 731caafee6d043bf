/** The group of nodes that a label names. An empty label names none. */
import type { ObjectMeta, Pod } from './kubernetes.ts'
import { GROUP_LABEL } from './names.ts'

export function groupOf({ labels }: ObjectMeta): string | null {
  const label = labels?.[GROUP_LABEL] ?? ''
  return label === '' ? null : label
}

/** Returns the pod with the group of its namespace, unless it has a label of its own. */
export function withGroup(pod: Pod, namespace: ObjectMeta | null): Pod {
  const { labels = {} } = pod.metadata
  const group = namespace === null ? null : groupOf(namespace)
  if (group === null || labels[GROUP_LABEL] !== undefined) return pod
  return { ...pod, metadata: { ...pod.metadata, labels: { ...labels, [GROUP_LABEL]: group } } }
}
