/** Hello and heartbeats: what this server says of itself, and the run lease it gets for that (R4, R6). */
import type {
  AttemptRef,
  DeviceKind,
  Envelope,
  Heartbeat,
  Lease,
  TaskIdentityKind,
  Welcome,
} from '../../protocol/messages.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus, NoAnswer } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Parts } from './parts.ts'
import { ANSWER_TIMEOUT_MS, RETRY_FIRST_MS, jittered, nextRetryMs } from './retry.ts'

/** Before the first welcome says otherwise. */
const HEARTBEAT_MS: DurationMs = 5_000

/**
 * Connected to a broker without a controller, it asks this often: the broker itself answers, and the
 * controller is heard of within this.
 */
const CONTROLLER_POLL_MS: DurationMs = 1_000

/** After a broker's return a thousand servers do not speak at once. */
const HEARTBEAT_SPREAD_MS: DurationMs = 500

/**
 * From a refused start to the heartbeat that lets the controller try again here: at most the shortest
 * interval of heartbeats, and the same where those that change nothing are not enacted.
 */
const AFTER_REFUSAL_MS: DurationMs = 1_000

export interface Identity {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: number
  /** What all copies together move through host memory; null: nobody has said. */
  readonly hostLinkMibPerS?: number | null
  readonly signalsWanted: boolean
  readonly deviceKind: DeviceKind
  readonly allowExec: boolean
  /** Attempts that it holds at once: those that live here, and those that ended and are not acknowledged. */
  readonly maxAttempts: number
  readonly taskIdentity?: TaskIdentityKind
}

export interface PresenceOptions {
  readonly identity: Identity
  readonly subjects: { readonly hello: string; readonly heartbeat: string }
  readonly bus: Bus
  readonly random: RandomStream
  readonly onWelcome: () => void
  /** The controller does not know this boot: nothing but hello will be answered. */
  readonly onBootUnknown: () => void
  /** In answer to a message sent at `sentMono`. Says whether no later one was answered before. */
  readonly onLease: (sentMono: number, lengthMs: DurationMs) => boolean
  /** The controller takes no server like this one; it is asked again. Once for each reason in a row. */
  readonly onRefused: (reason: string) => void
  /** Attempts that the controller has given up. */
  readonly onStop: (refs: readonly AttemptRef[]) => void
}

export class Presence {
  readonly #options: PresenceOptions
  readonly #parts: Parts
  #heartbeatMs = HEARTBEAT_MS
  /** Until the next heartbeat when nobody hears this one; grows until one is answered. */
  #unansweredRetryMs = RETRY_FIRST_MS
  #isGreeting = false
  /** The next heartbeat is the one after a refused start. */
  #isAfterRefusal = false
  #isStopped = false
  /** Why the last hello was refused; null: it was not. */
  #refusedFor: string | null = null
  #cancelHello: () => void = () => {}
  #cancelHeartbeat: () => void = () => {}

  constructor(parts: Parts, options: PresenceOptions) {
    this.#parts = parts
    this.#options = options
  }

  /**
   * Says hello, and nothing else, until it is welcome. One hello at a time, however many answers ask for it.
   */
  greet(): void {
    if (this.#isGreeting || this.#isStopped) return
    this.#isGreeting = true
    this.#isAfterRefusal = false
    this.#cancelHeartbeat()
    this.#options.onBootUnknown()
    this.#hello(RETRY_FIRST_MS)
  }

  /** An answer that says: I don't know you, or not this boot of you. */
  onUnexpectedAnswer(asked: Envelope, answer: Envelope): void {
    const { body } = answer
    if (asked.boot !== this.#parts.durable.boot) return
    if (body.op === 'state_reset') this.#parts.durable.rebootAbove(body.counter_above)
    else if (body.op !== 'refused' || body.reason !== 'unknown_node') return
    this.greet()
  }

  /**
   * The way to the controller is open again: it is not left waiting for the next heartbeat or the next try
   * (spread by jitter, R11).
   */
  heartbeatSoon(): void {
    const { clock, lease } = this.#parts
    if (this.#isStopped || lease.isElided) return
    const at = clock.now() + Math.floor(this.#options.random() * HEARTBEAT_SPREAD_MS)
    this.#unansweredRetryMs = RETRY_FIRST_MS
    if (this.#isGreeting) {
      this.#cancelHello()
      this.#cancelHello = clock.at(at, () => this.#hello(RETRY_FIRST_MS), RANK_MESSAGE)
    } else {
      this.#cancelHeartbeat()
      this.#cancelHeartbeat = clock.at(at, () => this.#heartbeat(), RANK_MESSAGE)
    }
  }

  /** A heartbeat out of turn. One that is not welcome yet says it all in its hello. */
  heartbeatNow(): void {
    if (!this.#isStopped && !this.#isGreeting) this.#heartbeat()
  }

  /** A start was refused: how things stand is said a little later, in place of the next heartbeat. */
  heartbeatAfterRefusal(): void {
    if (this.#isStopped || this.#isGreeting || this.#isAfterRefusal) return
    const { clock } = this.#parts
    this.#isAfterRefusal = true
    this.#cancelHeartbeat()
    this.#cancelHeartbeat = clock.at(clock.now() + AFTER_REFUSAL_MS, () => this.#heartbeat(), RANK_MESSAGE)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelHello()
    this.#cancelHeartbeat()
  }

  #hello(retryMs: DurationMs): void {
    const { durable, envelopes } = this.#parts
    if (!durable.persist()) return this.#helloAgain(retryMs)
    const { identity, bus, subjects } = this.#options
    const { hostLinkMibPerS = null, taskIdentity } = identity
    const sent = envelopes.seal({
      op: 'hello',
      node_id: identity.nodeId,
      name: identity.name,
      address: identity.address,
      host_swap_mib: identity.hostSwapMib,
      ...(hostLinkMibPerS === null ? {} : { host_link_mib_per_s: hostLinkMibPerS }),
      signals_wanted: identity.signalsWanted,
      device: identity.deviceKind,
      allow_exec: identity.allowExec,
      max_attempts: identity.maxAttempts,
      ...(taskIdentity === undefined ? {} : { task_identity: taskIdentity }),
      ...this.#snapshot(),
    })
    bus.request(subjects.hello, sent, ANSWER_TIMEOUT_MS, (outcome) => {
      if (this.#isStopped) return
      if (!outcome.answered) return this.#helloAgain(retryDelayMs(outcome.why, retryMs))
      if (!durable.accepts(outcome.answer)) return this.#helloAgain(retryMs)
      const { body } = outcome.answer
      if (body.op === 'welcome') return this.#welcome(body, sent.sent_mono)
      this.#noteRefusal(body)
      this.onUnexpectedAnswer(sent, outcome.answer)
      this.#helloAgain(retryMs)
    })
  }

  #noteRefusal(body: Envelope['body']): void {
    if (body.op !== 'refused' || body.reason === this.#refusedFor) return
    this.#refusedFor = body.reason
    this.#options.onRefused(body.reason)
  }

  #helloAgain(retryMs: DurationMs): void {
    const { clock } = this.#parts
    const at = clock.now() + jittered(retryMs, this.#options.random)
    this.#cancelHello = clock.at(at, () => this.#hello(nextRetryMs(retryMs)), RANK_MESSAGE)
  }

  #welcome(body: Welcome, sentMono: number): void {
    this.#isGreeting = false
    this.#refusedFor = null
    this.#granted(body, sentMono)
    this.#planHeartbeat()
    this.#options.onWelcome()
  }

  #planHeartbeat(withinMs = this.#heartbeatMs): void {
    const { clock, lease } = this.#parts
    if (lease.isElided) return
    this.#cancelHeartbeat()
    const at = clock.now() + jittered(withinMs, this.#options.random)
    this.#cancelHeartbeat = clock.at(at, () => this.#heartbeat(), RANK_MESSAGE)
  }

  #heartbeat(): void {
    const { durable, envelopes } = this.#parts
    const { identity, bus, subjects } = this.#options
    this.#isAfterRefusal = false
    this.#cancelHeartbeat()
    // What the disk did not take before, an end of a task say, is not left until somebody asks.
    durable.persist()
    const sent = envelopes.seal({ op: 'heartbeat', node_id: identity.nodeId, ...this.#snapshot() })
    this.#planHeartbeat()
    bus.request(subjects.heartbeat, sent, this.#heartbeatMs, (outcome) => {
      if (this.#isStopped) return
      if (!outcome.answered) return this.#unanswered(outcome.why)
      this.#unansweredRetryMs = RETRY_FIRST_MS
      if (!durable.accepts(outcome.answer)) return
      const { body } = outcome.answer
      if (body.op === 'lease') this.#granted(body, sent.sent_mono)
      else this.onUnexpectedAnswer(sent, outcome.answer)
    })
  }

  /**
   * After a broker's return this server may be back before the controller: it does not wait a whole heartbeat
   * for it.
   */
  #unanswered(why: NoAnswer): void {
    if (why !== 'no_responder' || this.#isGreeting) return
    const retryMs = retryDelayMs(why, this.#unansweredRetryMs)
    if (retryMs >= this.#heartbeatMs) return
    this.#planHeartbeat(retryMs)
    this.#unansweredRetryMs = nextRetryMs(retryMs)
  }

  /**
   * Answers may overtake each other: the latest word on settings and lease holds, a stop list always does,
   * and before anything resumes.
   */
  #granted({ settings, stop, unknown = [] }: Welcome | Lease, sentMono: number): void {
    this.#options.onStop(stop)
    if (unknown.length > 0) this.#reportUnknownAgain()
    if (this.#options.onLease(sentMono, settings.run_lease_ms)) {
      this.#heartbeatMs = settings.heartbeat_ms
      this.#parts.ledger.reserveMib = settings.safety_reserve_mib
    }
  }

  /**
   * Attempts that no task has are stopped once two snapshots have named them, also where heartbeats are not
   * enacted.
   */
  #reportUnknownAgain(): void {
    const { clock, lease } = this.#parts
    if (!lease.isElided) return
    this.#cancelHeartbeat()
    this.#cancelHeartbeat = clock.at(clock.now() + this.#heartbeatMs, () => this.#heartbeat(), RANK_MESSAGE)
  }

  #snapshot(): Pick<Heartbeat, 'gpus' | 'tasks' | 'finished_unacked'> {
    const { clock, device, durable, tasks } = this.#parts
    return {
      gpus: device.gpus(),
      tasks: tasks.reports(clock.now()),
      finished_unacked: durable.outbox.finished(),
    }
  }
}

/**
 * Without a controller on the broker another try costs next to nothing; any other silence may be an overload
 * (R11).
 */
function retryDelayMs(why: NoAnswer, retryMs: DurationMs): DurationMs {
  return why === 'no_responder' ? Math.min(retryMs, CONTROLLER_POLL_MS) : retryMs
}
