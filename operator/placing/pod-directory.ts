/** The pods by their UID, as they were last seen. */
import type { Pod } from '../contract/kubernetes.ts'
import type { Change } from '../reflector/reflector.ts'

export class PodDirectory {
  readonly #byUid = new Map<string, Pod>()

  take({ type, object }: Change): void {
    const pod = object as unknown as Pod
    const { uid = '' } = pod.metadata
    if (type === 'deleted') this.#byUid.delete(uid)
    else this.#byUid.set(uid, pod)
  }

  readonly find = (uid: string): Pod | undefined => this.#byUid.get(uid)

  all(): Iterable<Pod> {
    return this.#byUid.values()
  }
}
