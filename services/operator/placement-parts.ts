/** What a term is made of, apart from its decisions. */
import type { Clock } from '../../controller/ports/clock.ts'
import { PodBindings } from '../../operator/placing/pod-bindings.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { Placement, PlacementOptions } from './placement.ts'

/** ISO 8601, as the times of Kubernetes. */
export function wholeSeconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z')
}

export function podBindings(options: PlacementOptions, clock: Clock, placement: Placement): PodBindings {
  return new PodBindings({
    ...options,
    ...{ clock, pod: options.objects.pod, onFault: (error) => options.onNote(errorText(error)) },
    book: (nodeName) => placement.book(nodeName),
    limits: (nodeName) => placement.settings.limitsOf(nodeName),
    whyWaiting: (uid) => placement.whyWaiting(uid),
  })
}
