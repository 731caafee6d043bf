/** Whether a pod may be swapped out: its annotation, a variable set by hand, and its probes. */
import { annotationPath, faulty, type Parsed, quoted, valid } from '../contract/field-fault.ts'
import type { Container, Pod } from '../contract/kubernetes.ts'
import { POD_ANNOTATIONS, SWAP_VARIABLE } from '../contract/names.ts'
import type { PodRequest } from '../contract/pod-request.ts'
import { swapOfVariable } from '../contract/variables.ts'

export interface SwapMode {
  readonly isSwappable: boolean
  readonly warnings: readonly string[]
}

/**
 * 1. The annotation.
 * 2. A variable that was set by hand: it becomes the annotation, with a warning.
 * 3. Swappable.
 * Containers with different variables, and no annotation, are refused.
 */
export function swapMode({ metadata, spec }: Pod, request: PodRequest): Parsed<SwapMode> {
  const set: { readonly path: string; readonly isSwappable: boolean }[] = []
  for (const [list, containers] of Object.entries({
    containers: spec.containers,
    initContainers: spec.initContainers ?? [],
  }))
    for (const [index, container] of containers.entries()) {
      const own = swapOfVariable(variablesOf(container))
      const path = `spec.${list}[${index}].env`
      if (!own.ok) return faulty(`${path}[${own.faults[0]!.path}]`, own.faults[0]!.message)
      if (own.value !== null) set.push({ path, isSwappable: own.value })
    }
  const [specified] = SWAP_VARIABLE
  const annotation = POD_ANNOTATIONS.swapFromVram
  if (metadata.annotations?.[annotation] !== undefined) {
    const contrary = set.find(({ isSwappable }) => isSwappable !== request.isSwappable)
    const isOurs = metadata.annotations[POD_ANNOTATIONS.notSwappable] !== undefined
    const warnings =
      contrary === undefined || isOurs
        ? []
        : [`${contrary.path}: ${specified} is replaced; the annotation ${annotation} applies`]
    return valid({ isSwappable: request.isSwappable, warnings })
  }
  const [first] = set
  if (first === undefined) return valid({ isSwappable: true, warnings: [] })
  const other = set.find(({ isSwappable }) => isSwappable !== first.isSwappable)
  if (other !== undefined)
    return faulty(other.path, `${specified} differs between containers; set ${annotationPath(annotation)}`)
  const value = quoted(String(first.isSwappable))
  return valid({
    isSwappable: first.isSwappable,
    warnings: [`${first.path}: set the annotation ${annotation} to ${value} instead of ${specified}`],
  })
}

/** Literal values only: others are not known before the container starts. */
function variablesOf({ env = [] }: Container): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}
