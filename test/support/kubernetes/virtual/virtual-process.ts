/** A process in virtual time: it may be stopped and continued, or killed. */
import type { Clock } from '../../../../controller/ports/clock.ts'
import { Pause } from '../../../../simulator/kernel/pause.ts'
import { ProcessClock } from '../../../../simulator/kernel/process-clock.ts'

export class VirtualProcess {
  readonly #clock: Clock
  readonly #pause = new Pause()
  readonly #clocks: ProcessClock[] = []
  #isDead = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isRunning(): boolean {
    return !this.#isDead && !this.#pause.isOn
  }

  get isDead(): boolean {
    return this.#isDead
  }

  readonly newClock = (): ProcessClock => {
    const clock = new ProcessClock(this.#clock, this.#pause)
    this.#clocks.push(clock)
    return clock
  }

  /** Something arrives at the process: it is handled once the process runs; never, if the process is dead. */
  run(act: () => void): void {
    this.#pause.run(() => void (this.#isDead || act()))
  }

  stop(): void {
    this.#pause.begin()
  }

  continue(): void {
    this.#pause.end()
  }

  kill(): void {
    this.#isDead = true
    for (const clock of this.#clocks) clock.stop()
  }
}
