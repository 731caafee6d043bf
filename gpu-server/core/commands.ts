/**
 * Commands of the controller and their answers: obeyed, refused, or what is known about the attempt (R3, R7,
 * R12).
 */
import type { Body } from '../../protocol/envelope.ts'
import type { Mutable } from '../../protocol/fields.ts'
import type { Command, CommandResult, PrepareCommand, RefusalReason } from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import { mountFeature, type Feature, type MountFeature, type NoSwap } from '../../protocol/units.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptStart } from './attempt-start.ts'
import type { ReadBlobPart } from './device.ts'
import { descriptionOf, newAttempt, startOf } from './attempt.ts'
import type { ControllerMark } from './durable-state.ts'
import type { Growths } from './growths.ts'
import type { Parts } from './parts.ts'
import type { Preparations } from './preparations.ts'
import type { Launch, Runs } from './runs.ts'
import type { Swaps } from './swaps.ts'

export interface CommandLimits {
  /** True if commands run here; otherwise only leases do. */
  readonly allowExec: boolean
  /** Features that tasks may require, as in the hello. */
  readonly features: readonly (Feature | MountFeature)[]
  /** Living attempts plus unacknowledged ends. */
  readonly maxAttempts: number
  /** Reads of the uploaded files of an attempt. */
  readonly blobsOf: (taskId: string, attempt: number) => ReadBlobPart
  readonly preparations: Preparations
}

/** Refusals that another try on this host would meet again. */
const LASTING_REFUSALS: Partial<Record<RefusalReason, StartRefused>> = {
  environment_unreadable: { cause: 'task', code: 'environment_unreadable' },
}

/** The controller does not send such a start; the hello names the features. */
const MISSING_FEATURES: Readonly<Record<'image' | 'files' | 'limits' | 'mounts', StartRefused>> = {
  image: { cause: 'host', code: 'no_container_runtime' },
  files: { cause: 'host', code: 'no_files' },
  limits: { cause: 'host', code: 'limits_not_set' },
  mounts: { cause: 'host', code: 'no_such_mount' },
}

export class Commands {
  readonly #parts: Parts
  readonly #runs: Runs
  readonly #swaps: Swaps
  readonly #growths: Growths
  readonly #limits: CommandLimits

  constructor(parts: Parts, runs: Runs, swaps: Swaps, growths: Growths, limits: CommandLimits) {
    this.#parts = parts
    this.#runs = runs
    this.#swaps = swaps
    this.#growths = growths
    this.#limits = limits
  }

  /** Everything in the answer is durable before it returns (R1). */
  answer(message: ControllerMark, command: Command): CommandResult {
    const refusal = this.#refusalOf(message, command)
    if (refusal !== null) return this.#refuse(command, refusal)
    // The controller decided with this reserve, which the next heartbeat may not have brought yet.
    if (command.safety_reserve_mib !== undefined) this.#parts.ledger.reserveMib = command.safety_reserve_mib
    if (command.op === 'start') return this.#start(command, message.epoch)
    if (command.op === 'prepare') return this.#prepare(command)
    const attempt = this.#parts.tasks.find(command.task_id, command.attempt)
    return attempt === null ? this.#whatIsKnown(command) : this.#obey(command, attempt)
  }

  /**
   * R3: obeyed only for the newest epoch and its process, for this boot, and in time by this server's clock.
   */
  #refusalOf(mark: ControllerMark, command: Command): RefusalReason | null {
    const { durable, envelopes } = this.#parts
    const { boot } = durable
    if (durable.isOfOtherController(mark)) return 'stale_epoch'
    if (command.node_boot.counter !== boot.counter || command.node_boot.random !== boot.random)
      return 'other_boot'
    if (envelopes.mono() > command.valid_until_mono) return 'expired'
    return durable.accepts(mark) ? null : 'disk_failed'
  }

  /**
   * A refused start burns its attempt. A start of an attempt that was seen before is a duplicate and is
   * answered with the state of the attempt, even if the message is invalid: `refused` would send a running
   * task to another node (R7).
   */
  #refuse(command: Command, reason: RefusalReason): CommandResult {
    if (command.op !== 'start') return this.#result(command, 'refused', reason)
    if (command.attempt <= this.#parts.durable.seen.highest(command.task_id))
      return this.#whatIsKnown(command)
    return this.#burn(command, reason)
  }

  #start(command: StartCommand, epoch: number): CommandResult {
    const { clock, durable } = this.#parts
    if (command.attempt <= durable.seen.highest(command.task_id)) return this.#whatIsKnown(command)
    const refusal = this.#refusalToStart(command)
    const { preparations } = this.#limits
    if (refusal !== null) {
      preparations.drop(command)
      return this.#burn(command, refusal)
    }
    const start = startOf(command)
    const attempt = newAttempt(start, clock.now())
    if (!durable.addStarting(attempt, descriptionOf(command))) {
      preparations.drop(command)
      return this.#diskFailed(command)
    }
    preparations.started(start.taskId, start.attempt)
    this.#runs.launch(attempt, this.#launchOf(command, start, epoch))
    return this.#result(command, 'accepted', null, attempt)
  }

  #launchOf(command: StartCommand, start: AttemptStart, epoch: number): Launch {
    const { image, workdir, cwd, limits, mounts, env = null } = command
    const launch: Mutable<Launch> = { start, command: command.command, epoch, env: valuesIn(env ?? []) }
    if (image !== undefined) launch.image = image
    if (workdir !== undefined)
      launch.workdir = { sha256: workdir, read: this.#limits.blobsOf(start.taskId, start.attempt) }
    if (cwd !== undefined) launch.cwd = cwd
    if (limits !== undefined) launch.limits = limits
    if (mounts !== undefined) launch.mounts = mounts
    return launch
  }

  /** Burns nothing: the attempt may still start, here or elsewhere. */
  #prepare(command: PrepareCommand): CommandResult {
    const { durable } = this.#parts
    const refusal =
      command.attempt <= durable.seen.highest(command.task_id)
        ? 'old_attempt'
        : !this.#limits.allowExec
          ? 'exec_not_allowed'
          : missingFeatureOf(command, this.#limits.features) !== null
            ? 'feature_missing'
            : this.#limits.preparations.begin(command)
    return this.#result(command, refusal === null ? 'accepted' : 'refused', refusal)
  }

  /**
   * R3, R12: requires a run lease, no older living attempt, GPUs of this server, and VRAM within the reserve.
   * A command of an image never runs on the host itself, and none without its limits.
   */
  #refusalToStart(start: StartCommand): RefusalReason | null {
    const { durable, envelopes, lease, ledger, tasks } = this.#parts
    const { task_id, gpus, vram_mib, command, env } = start
    if (command !== null && !this.#limits.allowExec) return 'exec_not_allowed'
    if (missingFeatureOf(start, this.#limits.features) !== null) return 'feature_missing'
    if (env === null) return 'environment_unreadable'
    if (!lease.holds(envelopes.mono())) return 'no_lease'
    // An attempt that ended here by itself ends its task, once the controller has received the end (R8).
    if (tasks.ofTask(task_id) !== null || durable.outbox.hasOwnEnd(task_id)) return 'old_attempt'
    if (!ledger.hasAll(gpus)) return 'unknown_gpu'
    if (!ledger.fits(gpus, vram_mib)) return 'no_vram'
    // A snapshot holds no more than its limit (R11), and an attempt missing from a snapshot counts as lost
    // (R6).
    return tasks.size + durable.outbox.finishedCount < this.#limits.maxAttempts ? null : 'node_full'
  }

  #obey(command: Exclude<Command, StartCommand | PrepareCommand>, attempt: Attempt): CommandResult {
    switch (command.op) {
      case 'stop':
        this.#runs.stop(attempt, 'stopped', command.grace_ms ?? 0)
        return this.#result(command, 'accepted', null)
      case 'swap_out':
        return this.#swapped(command, this.#swaps.swapOut(command, attempt))
      case 'swap_in':
        return this.#swapped(command, this.#swaps.swapIn(command, attempt))
      case 'grant':
        return this.#swapped(command, this.#growths.grant(attempt, command.mib))
      case 'refuse_growth':
        this.#growths.refuse(attempt, command.mib)
        return this.#result(command, 'accepted', null)
      case 'set_noswap':
        return this.#swapped(command, this.#setNoswap(attempt, command.noswap))
    }
  }

  /** The change is durable before the answer. */
  #setNoswap(attempt: Attempt, noswap: NoSwap): RefusalReason | null {
    const { durable } = this.#parts
    const before = attempt.noswap
    if (noswap === before) return null
    attempt.noswap = noswap
    durable.keep(attempt)
    if (durable.persist()) return null
    attempt.noswap = before
    durable.keep(attempt)
    return 'disk_failed'
  }

  #swapped(command: Command, refusal: RefusalReason | null): CommandResult {
    return this.#result(command, refusal === null ? 'accepted' : 'refused', refusal)
  }

  /**
   * R7. Burns an attempt that was never seen, so that it cannot start after the controller was told
   * `never_seen`.
   */
  #whatIsKnown(command: Command): CommandResult {
    const { durable, tasks } = this.#parts
    const { task_id, attempt } = command
    if (tasks.find(task_id, attempt) !== null) return this.#result(command, 'running', null)
    if (durable.outbox.hasFinished(task_id, attempt)) return this.#result(command, 'finished', null)
    const isBurned = durable.seen.isBurned(task_id, attempt)
    if (!isBurned && attempt <= durable.seen.highest(task_id)) return this.#result(command, 'gone', null)
    const isDurable = isBurned ? durable.persist() : durable.burn(task_id, attempt)
    return isDurable
      ? this.#result(command, 'never_seen', null)
      : this.#result(command, 'refused', 'disk_failed')
  }

  #burn(command: StartCommand, reason: RefusalReason): CommandResult {
    const isDurable = this.#parts.durable.burn(command.task_id, command.attempt)
    if (!isDurable) return this.#diskFailed(command)
    const missing = reason === 'feature_missing' ? missingFeatureOf(command, this.#limits.features) : null
    const cause = missing === null ? LASTING_REFUSALS[reason] : MISSING_FEATURES[missing]
    return {
      ...this.#result(command, 'refused', reason),
      ...(cause === undefined ? {} : { start_refused: cause }),
    }
  }

  /** No task can start while the server cannot record the start. */
  #diskFailed(command: StartCommand): CommandResult {
    return {
      ...this.#result(command, 'refused', 'disk_failed'),
      start_refused: { cause: 'host', code: 'state_folder' },
    }
  }

  #result(
    command: Command,
    outcome: CommandResult['outcome'],
    reason: RefusalReason | null,
    living = this.#parts.tasks.find(command.task_id, command.attempt),
  ): CommandResult {
    const { task_id, attempt } = command
    return {
      op: 'result',
      task_id,
      attempt,
      outcome,
      reason,
      residency: living?.residency ?? 'none',
      generation: living?.generation ?? 0,
    }
  }
}

type MayNeed = 'image' | 'workdir' | 'cwd' | 'limits' | 'mounts'

/** Returns the first feature that the start needs and this server does not have; null: none. */
function missingFeatureOf(
  { image, workdir, cwd, limits, mounts = [] }: Partial<Pick<StartCommand, MayNeed>>,
  features: readonly (Feature | MountFeature)[],
): keyof typeof MISSING_FEATURES | null {
  if (image !== undefined && !features.includes('image')) return 'image'
  if (limits !== undefined) {
    const { vram_limit_mib: vramLimit, ...ofHost } = limits
    if (Object.keys(ofHost).length > 0 && !features.includes('limits')) return 'limits'
    if (vramLimit !== undefined && !features.includes('vram_limit')) return 'limits'
  }
  if (!mounts.every((name) => features.includes(mountFeature(name)))) return 'mounts'
  const needsFiles = workdir !== undefined || cwd !== undefined
  return needsFiles && !features.includes('files') ? 'files' : null
}

function valuesIn(env: NonNullable<StartCommand['env']>): Readonly<Record<string, string>> {
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}

export function isCommand(body: Body): body is Command {
  return 'valid_until_mono' in body
}
