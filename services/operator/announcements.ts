/** What the leading operator tells people: conditions of pods, and events of what has changed. */
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION } from '../../operator/contract/names.ts'
import { type EventSubject, Events, type Happening } from '../../operator/placing/events.ts'
import { type Admission, PodConditions, reservedAdmission } from '../../operator/placing/pod-conditions.ts'
import type { KubeApi } from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { Instant } from '../../protocol/units.ts'

export interface AnnouncementsOptions {
  readonly api: KubeApi
  readonly now: () => Instant
  /** Name of this replica. */
  readonly name: string
  readonly onNote: (line: string) => void
}

export class Announcements {
  readonly conditions: PodConditions
  readonly #events: Events
  readonly #onNote: (line: string) => void

  constructor({ api, now, name, onNote }: AnnouncementsOptions) {
    this.conditions = new PodConditions(api, now)
    this.#events = new Events(api, now, name)
    this.#onNote = onNote
  }

  /** Writes the condition of the pod, with an event if its reason is new. Returns whether it wrote. */
  async write(pod: Pod, admission: Admission): Promise<boolean> {
    const written = await this.conditions.write(pod, admission)
    if (written === 'reason' && !isToldByScheduler(pod, admission))
      await this.tell(podSubject(pod), happeningOf(admission))
    return written !== null
  }

  /** The rest continues without it. */
  async tell(subject: EventSubject, happening: Happening): Promise<void> {
    try {
      await this.#events.tell(subject, happening)
    } catch (error) {
      this.#onNote(`an event was not written: ${errorText(error)}`)
    }
  }
}

/** Its event says that the pod was bound, and to which node; the pod has waited for nothing. */
function isToldByScheduler({ status }: Pod, { reason }: Admission): boolean {
  const hasWaited = status?.conditions?.some(({ type }) => type === ADMITTED_CONDITION) === true
  return reason === reservedAdmission('').reason && !hasWaited
}

function happeningOf({ reason, message: note }: Admission): Happening {
  return { type: 'Normal', reason, note }
}

function podSubject({ metadata: { namespace = '', name = '', uid = '' } }: Pod): EventSubject {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid }
}
