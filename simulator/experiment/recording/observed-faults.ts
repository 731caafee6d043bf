/**
 * Causes of silent nodes: a machine restarted without its state, a server restarted with its tasks, or
 * messages were lost.
 */
import type { Envelope } from '../../../protocol/envelope.ts'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { formatDuration } from '../../document/quantity.ts'

interface Silence {
  readonly from: Instant
  bootCounter: number
}

export class ObservedFaults {
  readonly #from: Instant
  readonly #silences = new Map<string, Silence>()
  /** By node: the boot of its latest message. */
  readonly #boots = new Map<string, number>()
  readonly #entries: { readonly at: Instant; readonly node: string | null; readonly fault: object }[] = []

  constructor(from: Instant) {
    this.#from = from
  }

  /** Since when the node is considered silent. */
  silent(nodeId: string, since: Instant): void {
    if (!this.#silences.has(nodeId))
      this.#silences.set(nodeId, { from: since, bootCounter: this.#boots.get(nodeId) ?? 0 })
  }

  /** A message of the node, before it is handled. */
  heard(nodeId: string, { boot, body }: Envelope, at: Instant): void {
    const before = this.#boots.get(nodeId)
    // The message is of an earlier boot, or of another server with the same name.
    if (before !== undefined && boot.counter < before) return
    this.#boots.set(nodeId, boot.counter)
    const isNewBoot = before !== undefined && boot.counter > before
    const silence = this.#silences.get(nodeId)
    if (silence === undefined && !isNewBoot) return
    this.#silences.delete(nodeId)
    const from = silence?.from ?? at
    const keptTasks = body.op === 'hello' && body.tasks.length > 0
    if (!isNewBoot) this.#add(from, nodeId, 'partition', at - from)
    else if (keptTasks) this.#add(from, nodeId, 'bounce', null)
    else this.#add(from, nodeId, 'crash', Math.max(1, at - from))
  }

  /** A controller started; the latest message to the one before was at `before`. */
  restarted(before: Instant, at: Instant): void {
    this.#entries.push({
      at: before,
      node: null,
      fault: { crash: 'controller', for: time(Math.max(1, at - before)) },
    })
  }

  /**
   * As faults of the scenario, by time, of nodes in the fleet. Nodes that are silent at the end are silent
   * for the rest of the range.
   */
  entries(names: ReadonlyMap<string, string>, to: Instant): readonly object[] {
    for (const [nodeId, { from }] of this.#silences)
      this.#add(from, nodeId, 'partition', Math.max(1, to - from))
    this.#silences.clear()
    return this.#entries
      .toSorted((a, b) => a.at - b.at)
      .flatMap(({ at, node, fault }) => {
        const name = node === null ? null : names.get(node)
        if (name === undefined) return []
        return [{ at: time(Math.max(0, at - this.#from)), ...(name === null ? fault : named(fault, name)) }]
      })
  }

  #add(at: Instant, node: string, kind: 'partition' | 'bounce' | 'crash', forMs: DurationMs | null): void {
    this.#entries.push({ at, node, fault: { [kind]: NODE, ...(forMs === null ? {} : { for: time(forMs) }) } })
  }
}

const NODE = '{node}'

function named(fault: object, name: string): object {
  return Object.fromEntries(
    Object.entries(fault).map(([key, value]) => [
      key,
      value !== NODE ? value : key === 'partition' ? ['controller', name] : name,
    ]),
  )
}

function time(ms: DurationMs): string {
  return ms === 0 ? '0ms' : formatDuration(ms)
}
