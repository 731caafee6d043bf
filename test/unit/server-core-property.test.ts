import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../protocol/envelope.ts'
import type { Command, CommandResult, NodeEvent } from '../../protocol/messages.ts'
import { byCodeUnits } from '../../controller/structures/order.ts'
import type { Launched, SwapOutcome } from '../../gpu-server/core/device.ts'
import { ANSWER_TIMEOUT_MS, RETRY_MAX_MS } from '../../gpu-server/core/retry.ts'
import { COMMAND_TTL_MS, ServerCoreHarness } from '../support/server-core-harness.ts'

const SEED = 20_260_118
const FILE = 'test/unit/server-core-property.test.ts'
const RUNS = 1_500

const GPUS = 2
const PHYSICAL_MIB = 100
const RESERVE_MIB = 10
const HOST_MIB = 150
const LEASE_MS = 20_000
const HEARTBEAT_MS = 4_000
const TASKS = ['a', 'b', 'c']

/**
 * Anything that can happen to a server, in any order. The fake device throws when an attempt starts twice or
 * is not durable, when VRAM use breaks the reserve, when host memory overflows, when an allocation is granted
 * while its task is swapped out, and when a call is for an attempt that does not run.
 */
describe('for any controller, device, disk and network', () => {
  it('the server keeps its rules, and all its counts are zero once everything has ended', () => {
    const seen = {
      accepted: 0,
      refusedFor: new Set<string>(),
      outcomes: new Set<string>(),
      frozen: 0,
      swapped: 0,
      grown: 0,
      burned: 0,
    }
    const property = fc.property(
      fc.array(happening, { minLength: 5, maxLength: 70, size: 'max' }),
      (happenings) => {
        const play = new Play()
        for (const each of happenings) play.enact(each)
        play.endEverything()
        for (const call of play.calls()) {
          if (call.startsWith('freeze')) seen.frozen += 1
          if (call.startsWith('resume')) seen.swapped += 1
          if (call.startsWith('grant')) seen.grown += 1
        }
        for (const { outcome, reason } of play.results) {
          if (outcome === 'accepted') seen.accepted += 1
          if (reason !== null) seen.refusedFor.add(reason)
          seen.outcomes.add(outcome)
        }
        seen.burned += play.burned.size
      },
    )
    holds(property, RUNS)
    // The sequences cover what they are intended for.
    expect([...seen.outcomes].toSorted(byCodeUnits)).toEqual([
      'accepted',
      'finished',
      'gone',
      'never_seen',
      'refused',
      'running',
    ])
    expect([...seen.refusedFor].toSorted(byCodeUnits)).toEqual([
      'contrary',
      'disk_failed',
      'expired',
      'no_host_memory',
      'no_lease',
      'no_vram',
      'noswap',
      'old_attempt',
      'other_boot',
      'stale_epoch',
      'stale_generation',
      'unknown_gpu',
      'wants_gpu',
    ])
    const { accepted, frozen, swapped, grown, burned } = seen
    const rare = Object.entries({ accepted, frozen, swapped, grown, burned }).filter(
      ([, count]) => count < RUNS / 40,
    )
    expect(rare).toEqual([])
  })
})

type Happening = {
  readonly what: keyof typeof ENACT
  readonly task: string
  readonly dice: readonly [number, number, number]
}

const WEIGHTS: Readonly<Record<keyof typeof ENACT, number>> = {
  start: 8,
  stop: 1,
  swapOut: 12,
  swapIn: 16,
  grant: 5,
  refuseGrowth: 1,
  setNoswap: 1,
  repeat: 4,
  deviceAnswers: 20,
  exits: 2,
  uses: 3,
  wantsMore: 3,
  foreignMoves: 1,
  timePasses: 5,
  controllerIsAway: 1,
  controllerFallsSilent: 1,
  controllerSpeaksAgain: 2,
  reserveChanges: 1,
  controllerChanges: 1,
  diskFails: 1,
  hostCrashes: 1,
  serverDies: 3,
  nodeIsReset: 1,
}

const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.oneof(
    ...Object.entries(WEIGHTS).map(([what, weight]) => ({
      weight,
      arbitrary: fc.constant(what as Happening['what']),
    })),
  ),
  task: fc.constantFrom(...TASKS),
  dice: fc.tuple(fc.nat({ max: 999 }), fc.nat({ max: 999 }), fc.nat({ max: 999 })),
})

const pick = <T>(from: readonly T[], dice: number): T => from[dice % from.length] as T
const SWAP_OUTCOMES: readonly SwapOutcome[] = [
  'done',
  'done',
  'done',
  'done',
  'woke_while_locked',
  'copy_failed',
  'no_vram',
  'no_host_memory',
]

const ENACT = {
  start: (p: Play, { task, dice: [a, b, c] }: Happening) => {
    const attempt = Math.max(1, (p.attempts.get(task) ?? 0) + pick([1, 1, 1, 0, -1, 2], a))
    p.command(a, {
      op: 'start',
      ...p.address(task, c, attempt),
      gpus: pick([[0], [0], [1], [0, 1], [1, 0], [2]], b),
      vram_mib: pick([10, 20, 30, 45, 60, 90, 91], c),
      gpu_mode: 'shared',
      noswap: b % 5 === 0 ? 1 : 0,
      priority: 2,
      on_node_loss: pick(['wait', 'fail', 'requeue'], a),
      command: null,
    })
  },
  stop: (p: Play, { task, dice: [a, , c] }: Happening) =>
    p.command(a, { op: 'stop', ...p.address(task, c), reason: '' }),
  swapOut: (p: Play, happening: Happening) => p.swap('swap_out', happening),
  swapIn: (p: Play, happening: Happening) => p.swap('swap_in', happening),
  grant: (p: Play, { task, dice: [a, b, c] }: Happening) =>
    p.command(a, {
      op: 'grant',
      ...p.address(task, c),
      mib: pick([10, 30, 50, 70, 90, 100], b),
      noswap: 0,
      reason: null,
    }),
  refuseGrowth: (p: Play, { task, dice: [a, , c] }: Happening) =>
    p.command(a, { op: 'refuse_growth', ...p.address(task, c), mib: 10, noswap: 0, reason: 'no' }),
  setNoswap: (p: Play, { task, dice: [a, b, c] }: Happening) => {
    const address = p.address(task, c)
    // The controller never makes a task noswap that is swapping out or swapped out (semantics 1).
    if (p.h.device.processes.get(address.task_id)?.isInHost === true) return
    p.command(a, { op: 'set_noswap', ...address, mib: 0, noswap: b % 2 === 0 ? 0 : 1, reason: null })
  },
  /** The network delivers an old message again. */
  repeat: (p: Play, { dice: [a] }: Happening) => {
    const message = p.delivered.at(-1 - (a % 6))
    if (message !== undefined) p.deliver(message)
  },
  deviceAnswers: (p: Play, { task, dice: [a, b] }: Happening) => {
    for (const each of b % 3 === 0 ? [task] : TASKS) p.deviceAnswers(each, a, b)
    p.h.settle()
  },
  exits: (p: Play, { task, dice: [a] }: Happening) => {
    if (p.h.device.processes.has(task)) p.exit(task, pick([0, 0, 1, null], a))
  },
  uses: (p: Play, { task, dice: [a, b] }: Happening) => {
    const attempt = p.h.device.processes.get(task)?.attempt
    if (attempt === undefined || !p.h.device.generations.has(task)) return
    if (a % 3 === 0) p.active.add(task)
    else p.active.delete(task)
    p.h.device.uses(task, a % 3 === 0, b)
    p.h.settle()
  },
  wantsMore: (p: Play, { task, dice: [a] }: Happening) => {
    const process = p.h.device.processes.get(task)
    if (process?.isInVram !== true || process.isInHost) return
    p.h.device.wants(task, process.vramMib + pick([0, 10, 20, 40], a))
    p.h.settle()
  },
  foreignMoves: (p: Play, { dice: [a, b] }: Happening) =>
    p.h.device.setForeign(a % GPUS, pick([0, 0, 5, 30], b)),
  timePasses: (p: Play, { dice: [a] }: Happening) =>
    p.h.advance(pick([1, 500, 3_000, 6_000, COMMAND_TTL_MS + 1, LEASE_MS, 2 * LEASE_MS], a)),
  controllerIsAway: (p: Play, { dice: [a] }: Happening) => {
    ENACT.controllerFallsSilent(p)
    p.h.advance(pick([1_000, 8_000, LEASE_MS, 3 * LEASE_MS], a))
    ENACT.controllerSpeaksAgain(p)
  },
  controllerFallsSilent: (p: Play) => {
    p.speakAgain ??= p.h.bus.silence()
  },
  controllerSpeaksAgain: (p: Play) => {
    p.speakAgain?.()
    p.speakAgain = null
  },
  reserveChanges: (p: Play, { dice: [a] }: Happening) =>
    p.setReserve(pick([RESERVE_MIB, 2 * RESERVE_MIB], a)),
  controllerChanges: (p: Play) => {
    p.h.bus.epoch += 1
  },
  diskFails: (p: Play, { dice: [a] }: Happening) => {
    p.h.storage.isFailing = true
    const next = a % 4
    if (next === 0) p.h.advance(6_000)
    if (next === 1) ENACT.start(p, { what: 'start', task: pick(TASKS, a), dice: [0, 0, a] })
    if (next === 2) ENACT.stop(p, { what: 'stop', task: pick(TASKS, a), dice: [0, 0, a] })
    if (next === 3) ENACT.exits(p, { what: 'exits', task: pick(TASKS, a), dice: [a, 0, 0] })
    p.h.storage.isFailing = false
    // Every end is durable by the next heartbeat or hello at the latest.
    if (next === 3) p.h.advance(ANSWER_TIMEOUT_MS + 1.2 * RETRY_MAX_MS)
  },
  hostCrashes: (p: Play) => p.crash(),
  serverDies: (p: Play, { task, dice: [a, b, c] }: Happening) => {
    p.h.device.knowsResidency = b % 2 === 0
    p.bounce(() => {
      if (a % 4 === 0 && p.h.device.processes.has(task)) p.exit(task, pick([0, 1, null], b))
      if (a % 4 === 1 && p.h.device.processes.has(task) && p.h.device.generations.has(task)) {
        p.active.add(task)
        p.h.device.uses(task, true, 0)
      }
      p.h.advance(pick([0, 0, 1_000, 30_000], c))
    })
  },
  nodeIsReset: (p: Play) => {
    ENACT.controllerSpeaksAgain(p)
    const { heartbeat } = p.h.bus.script
    p.h.bus.script.heartbeat = () => ({ op: 'state_reset', counter_above: p.h.boot.counter })
    p.h.advance(6_000)
    p.h.bus.script.heartbeat = heartbeat
    p.h.advance(1_000)
  },
} as const

/** One sequence, and the data needed to judge it. */
class Play {
  readonly h = new ServerCoreHarness({
    gpus: GPUS,
    physicalMib: PHYSICAL_MIB,
    hostSwapMib: HOST_MIB,
    settings: { safety_reserve_mib: RESERVE_MIB, run_lease_ms: LEASE_MS, heartbeat_ms: HEARTBEAT_MS },
  })
  readonly attempts = new Map<string, number>()
  readonly delivered: Envelope[] = []
  readonly results: CommandResult[] = []
  /** `task/attempt` pairs that must never start: refused, never seen, or already started. */
  readonly burned = new Set<string>()
  /**
   * Those of them that failed on disk: after a crash, a copy of such a start names an old boot and is refused
   * for that.
   */
  readonly #burnedInMemory = new Set<string>()
  readonly #launched = new Set<string>()
  /** Tasks that want the GPU according to the device. */
  readonly active = new Set<string>()
  /** Attempts that the device has reported as ended, with their exit code; each must be reported once. */
  readonly #exited = new Set<string>()
  speakAgain: (() => void) | null = null
  readonly #calls: string[] = []

  enact(happening: Happening): void {
    ENACT[happening.what](this, happening)
    this.#checkBoots()
  }

  calls(): readonly string[] {
    return [...this.#calls, ...this.h.device.calls]
  }

  /** Attempt, boot and time limit of a command: usually the right ones. */
  address(
    task: string,
    dice: number,
    startsAs?: number,
  ): Pick<Command, 'task_id' | 'attempt' | 'node_boot' | 'valid_until_mono'> {
    const living = this.h.device.processes.get(task)?.attempt
    if (startsAs === undefined && living === undefined && dice % 5 !== 0) {
      const [other] = this.h.device.processes.keys()
      if (other !== undefined) return this.address(other, dice)
    }
    const meant = dice % 7 === 0 ? this.attempts.get(task) : (living ?? this.attempts.get(task))
    const attempt = startsAs ?? Math.max(1, (meant ?? 1) - (dice % 9 === 0 ? 1 : 0))
    this.attempts.set(task, Math.max(attempt, this.attempts.get(task) ?? 0))
    const node_boot = dice % 17 === 1 ? { counter: this.h.boot.counter - 1, random: 'older' } : this.h.boot
    return {
      task_id: task,
      attempt,
      valid_until_mono: Math.max(0, this.h.mono + (dice % 13 === 2 ? -1 : COMMAND_TTL_MS)),
      node_boot,
    }
  }

  swap(op: 'swap_out' | 'swap_in', { task, dice: [a, b, c] }: Happening): void {
    const address = this.address(task, c)
    const generation = Math.max(
      0,
      (this.h.device.generations.get(address.task_id) ?? 1) + pick([0, 0, 0, 0, 0, 0, -1, 1], b),
    )
    this.command(a, { op, ...address, generation, force_active: b % 3 === 0 })
  }

  command(dice: number, body: Command): void {
    this.deliver(this.h.bus.envelope(body, Math.max(0, this.h.bus.epoch - (dice % 19 === 3 ? 1 : 0))))
  }

  deliver(message: Envelope): void {
    const before = this.h.device.calls.length
    const { device } = this.h
    const wasActive = new Set(this.active)
    const isKnown = message.epoch <= this.h.storage.kept.highestEpoch
    const result = this.h.bus.tell(message)
    if (result === null) {
      if (isKnown) throw new Error('a command of a controller that this server obeys is not answered')
      expect(device.calls.slice(before)).toEqual([])
      return
    }
    if (result.op !== 'result') throw new Error(`the command was answered with ${result.op}`)
    this.delivered.push(message)
    this.results.push(result)
    this.#judge(message.body as Command, result, device.calls.slice(before), wasActive)
    this.h.settle()
  }

  /** Ends the launch or swap of this task, if there is one. */
  deviceAnswers(task: string, a: number, b: number): void {
    const process = this.h.device.processes.get(task)
    if (process === undefined) return
    if (!this.h.device.generations.has(task))
      this.#launch(task, a % 10 === 0 ? { error: 'no' } : { error: null, wantsGpu: b % 4 === 0 })
    else if (process.moved !== null) this.#settleMove(task, pick(SWAP_OUTCOMES, a))
  }

  #launch(task: string, launched: Launched): void {
    if (launched.error !== null) this.#exited.add(`${task}/${this.h.device.processes.get(task)?.attempt}`)
    else if (launched.wantsGpu) this.active.add(task)
    this.h.device.launched(task, launched)
  }

  setReserve(mib: number): void {
    this.h.bus.settings = { ...this.h.bus.settings, safety_reserve_mib: mib }
  }

  exit(task: string, exitCode: number | null): void {
    const attempt = this.h.device.processes.get(task)?.attempt
    this.h.exit(task, exitCode)
    this.#exited.add(`${task}/${attempt}`)
    this.h.device.generations.delete(task)
    this.active.delete(task)
  }

  #settleMove(task: string, outcome: SwapOutcome): void {
    const last = this.h.device.calls.findLast((call) =>
      new RegExp(`^(suspend|resume) ${task}(/|$)`).test(call),
    )
    if (last?.startsWith('suspend') === true) this.h.device.suspended(task, outcome)
    else this.h.device.resumed(task, outcome)
  }

  crash(): void {
    this.#calls.push(...this.h.device.calls)
    this.active.clear()
    this.#forgetMemory()
    // An attempt that had begun is reported as lost; one that had not was never seen.
    for (const { taskId, attempt, residency } of this.h.storage.kept.living.values()) {
      if (residency !== 'none') this.#exited.add(`${taskId}/${attempt}`)
      else this.#launched.delete(`${taskId}/${attempt}`)
    }
    this.h.restart()
  }

  bounce(meanwhile: () => void): void {
    this.#forgetMemory()
    this.h.bounce(meanwhile)
  }

  #forgetMemory(): void {
    for (const key of this.#burnedInMemory) this.burned.delete(key)
    this.#burnedInMemory.clear()
  }

  /** The controller is back, every attempt ends, and everything reserved is free again. */
  endEverything(): void {
    const { device } = this.h
    ENACT.controllerSpeaksAgain(this)
    this.setReserve(RESERVE_MIB)
    for (let gpu = 0; gpu < GPUS; gpu++) device.setForeign(gpu, 0)
    for (const task of [...device.processes.keys()]) this.exit(task, 0)
    this.h.advance(60_000)
    expect(this.#finished()).toEqual([...this.#exited].toSorted(byCodeUnits))
    expect(this.h.bus.snapshots().at(-1)).toMatchObject({ tasks: [], finished_unacked: [] })
    const capacityMib = PHYSICAL_MIB - RESERVE_MIB
    this.h.run('whole', { gpus: [0, 1], vram_mib: HOST_MIB / GPUS })
    this.h.swappedOut('whole')
    this.h.run('all', { gpus: [0, 1], vram_mib: capacityMib })
    expect(this.h.start('one more', { vram_mib: 1 })).toMatchObject({ outcome: 'refused', reason: 'no_vram' })
  }

  /** The answer agrees with the effect. */
  #judge(
    command: Command,
    result: CommandResult,
    calls: readonly string[],
    wasActive: ReadonlySet<string>,
  ): void {
    const key = `${command.task_id}/${command.attempt}`
    const launches = calls.filter((call) => call.startsWith('launch'))
    expect(launches.length).toBe(command.op === 'start' && result.outcome === 'accepted' ? 1 : 0)
    if (launches.length > 0) {
      if (this.burned.has(key)) throw new Error(`${key} starts, and must not (R3)`)
      this.#launched.add(key)
      this.burned.add(key)
    }
    if (command.op === 'start' && (result.outcome === 'refused' || result.outcome === 'never_seen')) {
      if (this.#launched.has(key))
        throw new Error(`${key} has started, and the answer is ${result.outcome} (R7)`)
      this.burned.add(key)
      if (result.reason === 'disk_failed') this.#burnedInMemory.add(key)
    }
    if (result.outcome === 'never_seen') this.burned.add(key)
    if (result.outcome === 'running')
      expect(this.h.device.processes.get(command.task_id)?.attempt).toBe(command.attempt)
    if (result.outcome === 'gone' || result.outcome === 'finished')
      expect(this.#livesHere(command)).toBe(false)
    for (const call of calls.filter((each) => each.startsWith('suspend'))) {
      if (command.op !== 'swap_out' || (wasActive.has(command.task_id) && !command.force_active))
        throw new Error(`${call} (R12)`)
    }
  }

  #livesHere(command: Command): boolean {
    return this.h.device.processes.get(command.task_id)?.attempt === command.attempt
  }

  #finished(): string[] {
    const ends = new Map<string, string>()
    for (const event of this.h.bus
      .events()
      .filter((each): each is Extract<NodeEvent, { kind: 'finished' }> => each.kind === 'finished')) {
      const key = `${event.task_id}/${event.attempt}`
      expect(ends.get(key) ?? event.outcome).toBe(event.outcome)
      ends.set(key, event.outcome)
    }
    return [...ends.keys()].toSorted(byCodeUnits)
  }

  #checkBoots(): void {
    const counters = this.h.bus.sent.map((message) => message.boot.counter)
    if (counters.some((counter, i) => counter < (counters[i - 1] ?? 0)))
      throw new Error('the boot counter falls (R6)')
    expect(this.h.storage.kept.bootCounter).toBe(counters.at(-1))
  }
}

function holds<T extends unknown[]>(property: fc.IProperty<T>, numRuns: number): void {
  const details = fc.check(property, { seed: SEED, numRuns })
  if (details.failed)
    throw new Error(`${fc.defaultReportMessage(details)}\nrepeat: node_modules/.bin/vitest run ${FILE}`, {
      cause: details.errorInstance,
    })
}
