/** Follows the pods of a benchmark: how many are bound, and when the last one was. */
import { createSystemClock } from '../../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../../controller/adapters/system-random.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { ADMITTED_CONDITION } from '../../../operator/contract/names.ts'
import { type KubeApi, PODS } from '../../../operator/ports/kube-api.ts'
import { Reflector } from '../../../operator/reflector/reflector.ts'
import type { Instant } from '../../../protocol/units.ts'

export class BoundPods {
  readonly #bound = new Map<string, Instant>()
  readonly #reported = new Set<string>()
  readonly #clock = createSystemClock()
  readonly #reflector: Reflector

  private constructor(api: KubeApi, synced: () => void) {
    this.#reflector = new Reflector({
      ...{ api, kind: PODS, clock: this.#clock, random: createSystemRandom().stream('bench') },
      onChange: ({ object }) => this.#take(object as unknown as Pod),
      onSynced: synced,
    })
    this.#reflector.start()
  }

  /** Resolves once it has read the pods. */
  static async follow(api: KubeApi): Promise<BoundPods> {
    const synced = Promise.withResolvers<void>()
    const pods = new BoundPods(api, synced.resolve)
    await synced.promise
    return pods
  }

  get count(): number {
    return this.#bound.size
  }

  /** Those whose condition says it too. */
  get reported(): number {
    return this.#reported.size
  }

  get lastAt(): Instant {
    return Math.max(...this.#bound.values())
  }

  async stop(): Promise<void> {
    await this.#reflector.stop()
    this.#clock.stop()
  }

  #take({ metadata: { name = '' }, spec, status }: Pod): void {
    if (spec.nodeName === undefined) return
    if (!this.#bound.has(name)) this.#bound.set(name, Date.now())
    const told = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
    if (told?.reason === 'Bound') this.#reported.add(name)
  }
}
