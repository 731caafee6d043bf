/** The production controller over a recording: it takes the recorded inputs one by one. */
import {
  createController,
  type Controller,
  type ControllerCheckpoint,
} from '../../../controller/controller.ts'
import type { Checkpoint, InputEntry, StartEntry } from '../../../controller/ports/recording-log.ts'
import { noAccessChanges, NO_HISTORY, type Batch, type StoredState } from '../../../controller/ports/store.ts'
import type { InputTap } from '../../../controller/recording/input-recorder.ts'
import { COMMAND_NAMES, type AnyCommand } from '../../../controller/recording/recorded-commands.ts'
import {
  ReplayDivergence,
  ReplayedBus,
  ReplayedClock,
  ReplayedRandom,
  ReplayedStore,
} from './replayed-ports.ts'

type OnCommit = (batch: Batch, n: number) => { readonly isDurable: boolean }
type AccessTurn = Parameters<InputTap['access']>[0]

/** The consequences of a store's answer are complete after this number of microtask turns. */
const SETTLED_AFTER_TURNS = 100

export class ReplayedController {
  readonly controller: Controller
  readonly #clock: ReplayedClock
  readonly #random = new ReplayedRandom()
  readonly #bus = new ReplayedBus()
  readonly #store: ReplayedStore
  #access: AccessTurn | null = null
  /** Actions to run once the store's answer is recorded. */
  #waiting: (() => void)[] = []
  #fault: unknown = null

  private constructor(start: StartEntry, state: StoredState, onCommit: OnCommit) {
    this.#clock = new ReplayedClock(start.at)
    this.#store = new ReplayedStore(state, onCommit)
    const { initialConfig, ownerLimits, areHeartbeatsElided, storeKind, leaseMs } = start
    const inputTap: InputTap = {
      begins: () => {},
      ports: (ports) => ports,
      commands: (commands) => commands,
      storeAnswered: (_, act) => void this.#waiting.push(act),
      access: (turn) => (this.#access = turn),
    }
    this.controller = createController(
      { clock: this.#clock, random: this.#random, bus: this.#bus, store: this.#store },
      {
        initialConfig,
        ownerLimits,
        areHeartbeatsElided,
        inputTap,
        ...(storeKind === undefined ? {} : { storeKind }),
        ...(leaseMs === undefined ? {} : { leaseMs }),
      },
    )
  }

  /** A controller that starts, with the recorded content of the store. */
  static started(start: StartEntry, state: StoredState, onCommit: OnCommit): ReplayedController {
    // Recordings of earlier versions contain no history.
    const replayed = new ReplayedController(start, { ...NO_HISTORY, ...state }, onCommit)
    // A start that the store refuses is recorded as such; nothing follows.
    replayed.controller.start().catch((fault: unknown) => (replayed.#fault = fault))
    return replayed
  }

  /** A controller that continues from a checkpoint. */
  static recalled(
    { start, at, requests }: Checkpoint,
    state: ControllerCheckpoint,
    onCommit: OnCommit,
  ): ReplayedController {
    const replayed = new ReplayedController(start, NOTHING_LOADED, onCommit)
    const [clock, bus, store] = [replayed.#clock, replayed.#bus, replayed.#store]
    clock.setNow(at)
    bus.recall(requests)
    store.recall(state.engine.commits)
    replayed.controller.restore(state, {
      timer: (mark, fn) => clock.again(mark, fn),
      request: (number, done) => bus.again(number, done),
      commit: (n) => store.again(n),
    })
    return replayed
  }

  /** Its state between two inputs, and the number of requests sent. */
  note(): Pick<Checkpoint, 'requests'> & { readonly state: ControllerCheckpoint } {
    const [clock, bus] = [this.#clock, this.#bus]
    const state = this.controller.capture({
      timer: (cancel) => clock.mark(cancel),
      soon: (fn) => clock.mark(fn),
      request: (done) => bus.numberOf(done),
    })
    return { state, requests: bus.requested }
  }

  /** @throws ReplayDivergence if the controller does not accept the input, or an error of the controller */
  async take(entry: InputEntry): Promise<void> {
    this.#clock.setNow(entry.at)
    this.#random.give(entry.draws ?? [])
    switch (entry.k) {
      case 'loaded':
        await this.#afterStore()
        break
      case 'durable':
      case 'failed':
        this.#store.settle(entry.n, entry.k === 'failed' ? entry.message : null)
        await this.#afterStore()
        break
      case 'timer':
        this.#clock.run(entry.due, entry.rank)
        break
      case 'message':
        this.#bus.hear(entry.pattern, entry.message, entry.subject, () => {})
        break
      case 'outcome':
        this.#bus.answer(entry.n, entry.outcome)
        break
      case 'broker':
        this.#bus.connection(entry.isConnected)
        break
      case 'command':
        this.#command(entry.name, entry.args)
        break
      case 'access':
        this.#touchAccess(entry.what)
    }
    this.#random.settle()
  }

  async #afterStore(): Promise<void> {
    for (let turn = 0; turn < SETTLED_AFTER_TURNS && this.#waiting.length === 0; turn++)
      await Promise.resolve()
    const act = this.#waiting.shift()
    if (act === undefined)
      throw this.#fault instanceof Error
        ? this.#fault
        : new ReplayDivergence('it does not wait for the store')
    act()
  }

  #command(name: string, args: readonly unknown[]): void {
    const known = COMMAND_NAMES.find((each) => each === name)
    if (known === undefined) throw new ReplayDivergence(`it has no command ${JSON.stringify(name)}`)
    ;(this.controller.commands[known] as AnyCommand).call(this.controller.commands, ...args, () => {})
  }

  #touchAccess(what: 'touch' | 'answer' | 'write'): void {
    const access = this.#access
    if (access === null) throw new Error('broken invariant: an engine without an access registry')
    if (what === 'touch') access.transaction().access ??= noAccessChanges()
    else if (what === 'write') access.write()
    else
      access.whenDurable(
        () => {},
        () => {},
      )
  }
}

const NOTHING_LOADED: StoredState = {
  openTasks: [],
  nodes: [],
  groups: [],
  config: null,
  tokens: [],
  secrets: [],
  lastAuditSeq: 0,
  submissionKeys: [],
  ...NO_HISTORY,
  marks: { epoch: 0, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 },
  finishedCounts: { completed: 0, failed: 0, cancelled: 0, lost: 0 },
}
