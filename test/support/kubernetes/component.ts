/**
 * A component of the stack as a kubelet runs it: it is started again after its end, and asked whether it is
 * ready as often as the chart says.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Member } from '../live-cluster.ts'

const LOOK_EVERY_MS = 100
/** Readiness probes of the chart: every 5 s, three failures in a row. */
const PROBE_EVERY_MS = 5_000
const PROBE_WITHIN_MS = 1_000
const FAILURES = 3

export class Component {
  readonly member: Member
  readonly #adminPort: number | null
  readonly #loop: Promise<void>
  #isStopped = false
  #isReady = false

  /** @param adminPort of /readyz; null: it is ready while it runs */
  constructor(member: Member, adminPort: number | null) {
    this.member = member
    this.#adminPort = adminPort
    this.#loop = this.#run()
  }

  get name(): string {
    return this.member.name
  }

  get isReady(): boolean {
    return this.#isReady && this.member.isRunning
  }

  /** A metric without labels; null: it does not answer. */
  async metric(name: string): Promise<number | null> {
    try {
      const signal = AbortSignal.timeout(PROBE_WITHIN_MS)
      const text = await (await fetch(`http://127.0.0.1:${this.#adminPort}/metrics`, { signal })).text()
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? NaN)
    } catch {
      return null
    }
  }

  /** Ends it; it is started again at once. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.#isReady = false
    await this.member.end(signal)
  }

  /** Stops its process for this long. */
  async pause(ms: number): Promise<void> {
    this.member.signal('SIGSTOP')
    await delay(ms)
    this.member.signal('SIGCONT')
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.member.signal('SIGCONT')
    await this.member.end()
    await this.#loop
  }

  async #run(): Promise<void> {
    let failures = 0
    for (let next = 0; !this.#isStopped; await delay(LOOK_EVERY_MS)) {
      if (!this.member.isRunning) {
        this.#isReady = false
        failures = next = 0
        await this.member.start(() => true)
      }
      if (performance.now() < next) continue
      const isUp = await this.#answers()
      failures = isUp ? 0 : failures + 1
      if (isUp) this.#isReady = true
      else if (failures >= FAILURES) this.#isReady = false
      next = performance.now() + (this.#isReady ? PROBE_EVERY_MS : PROBE_WITHIN_MS)
    }
  }

  async #answers(): Promise<boolean> {
    if (this.#adminPort === null) return true
    try {
      const signal = AbortSignal.timeout(PROBE_WITHIN_MS)
      return (await fetch(`http://127.0.0.1:${this.#adminPort}/readyz`, { signal })).ok
    } catch {
      return false
    }
  }
}
