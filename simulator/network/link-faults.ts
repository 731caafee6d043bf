/** Faults of the network: which active faults apply to a message, and what happens to it. */
import type { DurationMs } from '../../protocol/units.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Fault, Link } from '../scenario/fault.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import { LOST, UNHINDERED } from './passage.ts'
import type { LinkConditions, Party, Passage } from './passage.ts'

export type LinkFault = Extract<Fault, { readonly link: Link }>

export class LinkFaults implements LinkConditions {
  readonly #random: RandomStream
  readonly #tally: FaultTally
  readonly #active = new Set<LinkFault>()
  readonly #held = new Map<LinkFault, (() => void)[]>()

  constructor(random: RandomStream, tally: FaultTally) {
    this.#random = random
    this.#tally = tally
  }

  begin(fault: LinkFault): void {
    this.#active.add(fault)
    if (fault.kind === 'hold') this.#held.set(fault, [])
  }

  /** Returns the held messages, in the order in which they were sent. */
  end(fault: LinkFault): readonly (() => void)[] {
    this.#active.delete(fault)
    const held = this.#held.get(fault) ?? []
    this.#held.delete(fault)
    return held
  }

  passage(from: Party, to: Party): Passage {
    if (this.#active.size === 0) return UNHINDERED
    let delayMs: DurationMs = 0
    let spreadMs: DurationMs = 0
    let copies = 1
    let hold: Passage['hold'] = null
    for (const fault of this.#active) {
      if (!isOn(fault.link, from, to)) continue
      if (fault.kind === 'partition') return this.#lost(fault.kind)
      if (fault.kind === 'hold') hold = this.#keeper(fault, hold)
      else if (this.#meets(fault)) {
        if (fault.kind === 'drop') return LOST
        if (fault.kind === 'duplicate') copies += 1
        else if (fault.kind === 'delay') delayMs += fault.ms
        else if (fault.kind === 'reorder') spreadMs += fault.ms
      }
    }
    const delaysMs = Array.from(
      { length: copies },
      () => delayMs + (spreadMs === 0 ? 0 : Math.floor(this.#random() * (spreadMs + 1))),
    )
    return { isLost: false, copies, delaysMs, hold }
  }

  /** A message in flight on a link that is cut does not arrive. */
  isCut(from: Party, to: Party): boolean {
    for (const fault of this.#active) {
      if (fault.kind !== 'partition' || !isOn(fault.link, from, to)) continue
      this.#tally.fires('partition')
      return true
    }
    return false
  }

  #meets(fault: Extract<LinkFault, { readonly permille: number }>): boolean {
    if (this.#random() * 1000 >= fault.permille) return false
    this.#tally.fires(fault.kind)
    return true
  }

  #lost(kind: 'partition'): Passage {
    this.#tally.fires(kind)
    return LOST
  }

  /** The first hold keeps the message; the next hold gets it afterwards. */
  #keeper(fault: LinkFault, before: Passage['hold']): Passage['hold'] {
    if (before !== null) return before
    this.#tally.fires('hold')
    return (deliver) => this.#held.get(fault)?.push(deliver)
  }
}

/** Null is the controller. */
function isOn({ nodes, direction }: Link, from: Party, to: Party): boolean {
  const node = from.node ?? to.node
  if (node === null || (nodes !== null && !nodes.includes(node))) return false
  if (direction === 'both') return true
  return direction === 'to_controller' ? to.node === null : from.node === null
}
