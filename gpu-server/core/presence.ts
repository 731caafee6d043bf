/**
 * Hello and heartbeats: what this server reports about itself, and the run lease that it receives in return
 * (R4, R6).
 */
import type { Envelope } from '../../protocol/envelope.ts'
import type { AttemptRef, Heartbeat, Lease, Welcome } from '../../protocol/messages.ts'
import type { RequestCounts } from '../../protocol/message-fields.ts'
import type { DurationMs, DeviceKind, Feature, MountFeature, TaskIdentityKind } from '../../protocol/units.ts'
import type { Bus, NoAnswer } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Parts } from './parts.ts'
import { ANSWER_TIMEOUT_MS, RETRY_FIRST_MS, jittered, nextRetryMs } from './retry.ts'

/** Interval until the first welcome sets another one. */
const HEARTBEAT_MS: DurationMs = 5_000

/**
 * Interval of requests on a broker without a controller. The broker answers at once, so a controller is
 * noticed within this time.
 */
const CONTROLLER_POLL_MS: DurationMs = 1_000

/** Spreads the heartbeats of many servers after the broker returns. */
const HEARTBEAT_SPREAD_MS: DurationMs = 500

/**
 * Time from a refused start to the heartbeat that lets the controller try again here: the shortest interval
 * of heartbeats, also where unchanged heartbeats are not enacted.
 */
const AFTER_REFUSAL_MS: DurationMs = 1_000

export interface Identity {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: number
  /** Total bandwidth of copies through host memory; null: not configured. */
  readonly hostLinkMibPerS?: number | null
  readonly signalsWanted: boolean
  readonly deviceKind: DeviceKind
  readonly allowExec: boolean
  /** Maximum number of attempts at once: living ones and unacknowledged ends. */
  readonly maxAttempts: number
  readonly taskIdentity?: TaskIdentityKind
  readonly features: readonly (Feature | MountFeature)[]
}

export interface PresenceOptions {
  readonly identity: Identity
  readonly subjects: { readonly hello: string; readonly heartbeat: string }
  readonly bus: Bus
  readonly random: RandomStream
  readonly onWelcome: () => void
  /** The controller does not know this boot: only hello will be answered. */
  readonly onBootUnknown: () => void
  /**
   * Called for the answer to a message sent at `sentMono`. Returns true if no answer to a later message came
   * before.
   */
  readonly onLease: (sentMono: number, lengthMs: DurationMs) => boolean
  /** The controller refuses this server; the hello is repeated. Called once for each change of the reason. */
  readonly onRefused: (reason: string) => void
  /** Attempts that the controller has given up. */
  readonly onStop: (refs: readonly AttemptRef[]) => void
  /** The controller asks which of these images this host has. */
  readonly onImagesAsked: (images: readonly string[]) => void
  readonly preparations: () => Pick<Heartbeat, 'preparing' | 'images'>
}

export class Presence {
  readonly #options: PresenceOptions
  readonly #parts: Parts
  #heartbeatMs = HEARTBEAT_MS
  /** Time until the next heartbeat while heartbeats are unanswered; grows until one is answered. */
  #unansweredRetryMs = RETRY_FIRST_MS
  #isGreeting = false
  /** The next heartbeat follows a refused start. */
  #isAfterRefusal = false
  #isStopped = false
  /** Why the last hello was refused; null: it was not. */
  #refusedFor: string | null = null
  /** The hello whose answer counts; null: none, or it was dropped. */
  #askedHello: Envelope | null = null
  #cancelHello: () => void = () => {}
  #cancelHeartbeat: () => void = () => {}

  constructor(parts: Parts, options: PresenceOptions) {
    this.#parts = parts
    this.#options = options
  }

  /**
   * Sends hello, and nothing else, until the server is welcome. One hello at a time, whatever the number of
   * answers that require one.
   */
  greet(): void {
    if (this.#isGreeting || this.#isStopped) return
    this.#isGreeting = true
    this.#isAfterRefusal = false
    this.#cancelHeartbeat()
    this.#options.onBootUnknown()
    this.#hello(RETRY_FIRST_MS)
  }

  /** Handles the answer that the controller does not know this server or its boot. */
  onUnexpectedAnswer(asked: Envelope, answer: Envelope): void {
    const { body } = answer
    if (asked.boot !== this.#parts.durable.boot) return
    if (body.op === 'state_reset') this.#parts.durable.rebootAbove(body.counter_above)
    else if (body.op !== 'refused' || body.reason !== 'unknown_node') return
    this.greet()
  }

  /**
   * The connection is back, or another controller leads: sends without waiting for the next heartbeat or
   * retry (spread by jitter, R11). A hello that waits for its answer is dropped: a stopped leader owes it.
   */
  heartbeatSoon(): void {
    const { clock, lease } = this.#parts
    if (this.#isStopped || lease.isElided) return
    const at = clock.now() + Math.floor(this.#options.random() * HEARTBEAT_SPREAD_MS)
    this.#unansweredRetryMs = RETRY_FIRST_MS
    if (this.#isGreeting) {
      this.#askedHello = null
      this.#cancelHello()
      this.#cancelHello = clock.at(at, () => this.#hello(RETRY_FIRST_MS), RANK_MESSAGE)
    } else {
      this.#cancelHeartbeat()
      this.#cancelHeartbeat = clock.at(at, () => this.#heartbeat(), RANK_MESSAGE)
    }
  }

  /** Sends an extra heartbeat. A server that is not welcome yet reports everything in its hello. */
  heartbeatNow(): void {
    if (!this.#isStopped && !this.#isGreeting) this.#heartbeat()
  }

  /** Reports the state shortly after a refused start, in place of the next heartbeat. */
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
      features: identity.features,
      ...this.#snapshot(),
    })
    this.#askedHello = sent
    bus.request(subjects.hello, sent, ANSWER_TIMEOUT_MS, (outcome) => {
      if (this.#isStopped || sent !== this.#askedHello) return
      if (!outcome.answered) return this.#helloAgain(retryDelayMs(outcome.why, retryMs))
      if (!durable.acceptsAnswer(sent, outcome.answer)) return this.#helloAgain(retryMs)
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
    // Retries what the disk refused before, for example the end of a task, without waiting for a request.
    durable.persist()
    const sent = envelopes.seal({ op: 'heartbeat', node_id: identity.nodeId, ...this.#snapshot() })
    this.#planHeartbeat()
    bus.request(subjects.heartbeat, sent, this.#heartbeatMs, (outcome) => {
      if (this.#isStopped) return
      if (!outcome.answered) return this.#unanswered(outcome.why)
      this.#unansweredRetryMs = RETRY_FIRST_MS
      if (!durable.acceptsAnswer(sent, outcome.answer)) return
      const { body } = outcome.answer
      if (body.op === 'lease') this.#granted(body, sent.sent_mono)
      else this.onUnexpectedAnswer(sent, outcome.answer)
    })
  }

  /**
   * After the broker returns, this server may be back before the controller: it does not wait a whole
   * heartbeat for it.
   */
  #unanswered(why: NoAnswer): void {
    if (why !== 'no_responder' || this.#isGreeting) return
    const retryMs = retryDelayMs(why, this.#unansweredRetryMs)
    if (retryMs >= this.#heartbeatMs) return
    this.#planHeartbeat(retryMs)
    this.#unansweredRetryMs = nextRetryMs(retryMs)
  }

  /**
   * Answers may arrive out of order: the latest one decides settings and lease. A stop list always applies,
   * before anything resumes.
   */
  #granted({ settings, stop, unknown = [], images = [] }: Welcome | Lease, sentMono: number): void {
    this.#options.onStop(stop)
    this.#options.onImagesAsked(images)
    if (unknown.length > 0) this.#reportUnknownAgain()
    if (this.#options.onLease(sentMono, settings.run_lease_ms)) {
      this.#heartbeatMs = settings.heartbeat_ms
      this.#parts.ledger.reserveMib = settings.safety_reserve_mib
    }
  }

  /**
   * Attempts without a task are stopped once two snapshots have named them, also where heartbeats are not
   * enacted.
   */
  #reportUnknownAgain(): void {
    const { clock, lease } = this.#parts
    if (!lease.isElided) return
    this.#cancelHeartbeat()
    this.#cancelHeartbeat = clock.at(clock.now() + this.#heartbeatMs, () => this.#heartbeat(), RANK_MESSAGE)
  }

  #snapshot(): Omit<Heartbeat, 'op' | 'node_id'> {
    const { clock, device, durable, tasks } = this.#parts
    return {
      gpus: device.gpus(),
      tasks: tasks.reports(clock.now()),
      finished_unacked: durable.outbox.finished(),
      ...requestsIn(device.requestCounts?.()),
      ...this.#options.preparations(),
    }
  }
}

/** Absent while all are 0, as in messages of earlier versions. */
function requestsIn(requests: RequestCounts | undefined): Pick<Heartbeat, 'requests'> {
  const isAny = requests !== undefined && Object.values(requests).some((count) => count > 0)
  return isAny ? { requests } : {}
}

/** Without a controller on the broker a retry is cheap; any other silence may be an overload (R11). */
function retryDelayMs(why: NoAnswer, retryMs: DurationMs): DurationMs {
  return why === 'no_responder' ? Math.min(retryMs, CONTROLLER_POLL_MS) : retryMs
}
