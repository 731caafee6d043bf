import { describe, expect, it } from 'vitest'
import type { Command } from '../../protocol/messages.ts'
import { MAX_ATTEMPTS_PER_NODE } from '../../protocol/limits.ts'
import { MAX_SEEN_TASKS, SeenAttempts } from '../../gpu-server/core/seen-attempts.ts'
import { COMMAND_TTL_MS, ServerCoreHarness } from '../support/server-core-harness.ts'

const accepted = { outcome: 'accepted', reason: null }
const refused = (reason: string) => ({ outcome: 'refused', reason })

describe('a command is executed only (R3)', () => {
  it('for the newest epoch known to the server', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.stop('b')).toMatchObject({ outcome: 'never_seen' })
    h.controllerChanges(7)
    expect(h.command(startOf(h, 'c'), 7)).toMatchObject(accepted)
    expect(h.command(stopOf(h, 'a'), 6)).toMatchObject(refused('stale_epoch'))
    expect(h.command(stopOf(h, 'a'), 7)).toMatchObject(accepted)
    expect(h.device.calls).toEqual(['launch a', 'launch c', 'stop a'])
  })

  it('for the newest epoch also after a restart: the epoch is durable before the answer', () => {
    const h = new ServerCoreHarness()
    h.controllerChanges(9)
    expect(h.start('a')).toMatchObject(accepted)
    expect(h.storage.kept.highestEpoch).toBe(9)
    h.bus.epoch = 8
    h.restart()
    expect(h.start('b', { epoch: 8 })).toMatchObject(refused('stale_epoch'))
  })

  it('from one controller process per epoch: another process is refused like a lower epoch', () => {
    const h = new ServerCoreHarness()
    const sent = (controller: string | undefined, taskId: string) =>
      h.bus.deliver({
        ...h.bus.envelope(startOf(h, taskId), 7),
        ...(controller === undefined ? {} : { controller, event_seq: 12 }),
      })
    h.bus.stamped = (answer) => ({ ...answer, controller: 'one', event_seq: 11 })
    h.controllerChanges(7)
    expect(sent('one', 'a')).toMatchObject(accepted)
    expect(sent('other', 'b')).toMatchObject(refused('stale_epoch'))
    expect(sent(undefined, 'c')).toMatchObject(refused('stale_epoch'))
    expect(sent('one', 'd')).toMatchObject(accepted)
    expect(h.storage.kept).toMatchObject({ highestEpoch: 7, controller: 'one', eventSeq: 12 })
  })

  it('without the process id check if the controller is too old to send one', () => {
    const h = new ServerCoreHarness()
    h.controllerChanges(7)
    expect(h.command(startOf(h, 'a'), 7)).toMatchObject(accepted)
    expect(h.command(startOf(h, 'b'), 7)).toMatchObject(accepted)
  })

  it('from a controller whose answer to the present mark has arrived: others get no answer', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.bus.tell(h.bus.envelope(stopOf(h, 'a'), 7))).toBe(null)
    expect(h.storage.kept).toMatchObject({ highestEpoch: 1, attempts: new Map([['a', 1]]) })
    expect(h.device.calls).toEqual(['launch a'])
    h.controllerChanges(7)
    expect(h.command(stopOf(h, 'a'))).toMatchObject(accepted)
  })

  it('for the boot that it names', () => {
    const h = new ServerCoreHarness()
    for (const node_boot of [
      { ...h.boot, counter: h.boot.counter - 1 },
      { ...h.boot, counter: h.boot.counter + 1 },
      { ...h.boot, random: 'another' },
    ]) {
      expect(h.start(`for ${node_boot.counter} ${node_boot.random}`, { node_boot })).toMatchObject(
        refused('other_boot'),
      )
    }
    expect(h.device.calls).toEqual([])
  })

  it("until its time limit on the server's own clock", () => {
    const h = new ServerCoreHarness()
    h.advance(1_000)
    expect(h.start('in time', { valid_until_mono: h.mono })).toMatchObject(accepted)
    expect(h.start('too late', { valid_until_mono: h.mono - 1 })).toMatchObject(refused('expired'))
  })

  it('A stopped server answers no command', () => {
    const h = new ServerCoreHarness()
    h.start('a')
    h.core.stop()
    expect(() => h.start('b')).toThrow('no handler listens')
    h.bus.lastHandler(h.bus.envelope(startOf(h, 'late')), '', () => {
      throw new Error('it was answered')
    })
    expect(h.device.calls).toEqual(['launch a'])
  })
})

describe('a start requires', () => {
  it('a run lease (R3)', () => {
    const h = new ServerCoreHarness()
    h.bus.script.hello = () => null
    h.restart()
    expect(h.start('before the welcome')).toMatchObject(refused('no_lease'))
    const late = new ServerCoreHarness({ settings: { run_lease_ms: 20_000, heartbeat_ms: 60_000 } })
    late.advance(19_999)
    expect(late.start('at the last moment')).toMatchObject(accepted)
    late.advance(1)
    expect(late.start('when it is over')).toMatchObject(refused('no_lease'))
  })

  it('GPUs of this server, each named once (R12)', () => {
    const h = new ServerCoreHarness({ gpus: 2 })
    expect(h.start('a', { gpus: [0, 2] })).toMatchObject(refused('unknown_gpu'))
    expect(h.start('b', { gpus: [1, 0], vram_mib: 9_000 })).toMatchObject(accepted)
  })

  it('enough VRAM next to existing tasks, foreign memory and the reserve (R12)', () => {
    const h = new ServerCoreHarness({ gpus: 2, physicalMib: 10_000, settings: { safety_reserve_mib: 1_000 } })
    h.run('a', { vram_mib: 4_000 })
    h.device.setForeign(1, 500)
    expect(h.start('b', { gpus: [0], vram_mib: 5_001 })).toMatchObject(refused('no_vram'))
    expect(h.start('c', { gpus: [1], vram_mib: 8_501 })).toMatchObject(refused('no_vram'))
    expect(h.start('d', { gpus: [0, 1], vram_mib: 5_001 })).toMatchObject(refused('no_vram'))
    expect(h.start('e', { gpus: [0, 1], vram_mib: 5_000 })).toMatchObject(accepted)
    h.device.setForeign(1, 0)
    expect(h.start('f', { gpus: [1], vram_mib: 4_000 })).toMatchObject(accepted)
  })

  it('the latest reserve of the controller (R12)', () => {
    const h = new ServerCoreHarness({ settings: { safety_reserve_mib: 1_000 } })
    h.bus.settings = { ...h.bus.settings, safety_reserve_mib: 3_000 }
    h.advance(6_500)
    expect(h.start('a', { vram_mib: 7_001 })).toMatchObject(refused('no_vram'))
    expect(h.start('b', { vram_mib: 7_000 })).toMatchObject(accepted)
  })

  it('the absence of older attempts of the task on this server', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.start('a', { attempt: 2 })).toMatchObject(refused('old_attempt'))
    h.exit('a')
    expect(h.start('a', { attempt: 2 })).toMatchObject({ outcome: 'never_seen' })
    expect(h.start('a', { attempt: 3 })).toMatchObject(accepted)
  })

  it('space in a snapshot for one more attempt (R11)', () => {
    const h = new ServerCoreHarness({
      physicalMib: 2 * MAX_ATTEMPTS_PER_NODE,
      settings: { safety_reserve_mib: 0 },
    })
    h.bus.script.events = () => null
    for (let n = 0; n < MAX_ATTEMPTS_PER_NODE; n++) h.run(`task-${n}`, { vram_mib: 1 })
    expect(h.start('one more', { vram_mib: 1 })).toMatchObject(refused('node_full'))
    h.exit('task-0')
    expect(h.start('while its end is not acknowledged', { vram_mib: 1 })).toMatchObject(refused('node_full'))
    h.bus.script.events = (message) => ({
      op: 'events_ack',
      up_to: message.body.op === 'events' ? (message.body.entries.at(-1)?.n ?? 0) : 0,
    })
    h.advance(60_000)
    expect(h.start('then', { vram_mib: 1 })).toMatchObject(accepted)
  })
})

describe('an attempt never starts twice (R3, R7)', () => {
  it('a repeated start is answered running, even if too late or for an older boot', () => {
    const h = new ServerCoreHarness()
    const start = startOf(h, 'a')
    expect(h.command(start)).toMatchObject({ outcome: 'accepted', residency: 'none', generation: 0 })
    expect(h.command(start)).toMatchObject({ outcome: 'running', residency: 'none' })
    h.device.launched('a', { error: null, wantsGpu: true })
    expect(h.command(start)).toMatchObject({ outcome: 'running', residency: 'resident', generation: 1 })
    h.advance(COMMAND_TTL_MS + 1)
    expect(h.command(start)).toMatchObject({ outcome: 'running' })
    expect(h.command({ ...start, node_boot: { counter: 0, random: 'old' } } as Command)).toMatchObject({
      outcome: 'running',
    })
    expect(h.device.calls).toEqual(['launch a'])
  })

  it('an ended attempt is answered finished until its end is acknowledged, then gone', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    const speak = h.bus.silence()
    h.exit('a')
    expect(h.start('a')).toMatchObject({ outcome: 'finished' })
    expect(h.stop('a')).toMatchObject({ outcome: 'finished' })
    speak()
    h.advance(60_000)
    expect(h.start('a')).toMatchObject({ outcome: 'gone' })
    expect(h.swapOut('a')).toMatchObject({ outcome: 'gone' })
    expect(h.device.calls).toEqual(['launch a'])
  })

  it('after a restart, a started attempt is gone, and a refused or stopped one was never seen', () => {
    const h = new ServerCoreHarness()
    h.run('ran', { attempt: 4 })
    expect(h.start('refused', { attempt: 2, vram_mib: 9_999 })).toMatchObject(refused('no_vram'))
    h.stop('stopped', 3)
    h.restart()
    expect(h.start('ran', { attempt: 4 })).toMatchObject({ outcome: 'gone' })
    expect(h.start('ran', { attempt: 3 })).toMatchObject({ outcome: 'gone' })
    expect(h.start('refused', { attempt: 2 })).toMatchObject({ outcome: 'never_seen' })
    expect(h.start('stopped', { attempt: 3 })).toMatchObject({ outcome: 'never_seen' })
    expect(h.device.calls).toEqual([])
    expect(h.start('ran', { attempt: 5 })).toMatchObject(accepted)
  })

  it('a refusal burns the attempt, whatever the reason', () => {
    const h = new ServerCoreHarness()
    h.controllerChanges(5)
    h.start('new epoch')
    const refusals = {
      stale_epoch: { epoch: 4 },
      other_boot: { node_boot: { counter: 0, random: 'old' } },
      expired: { valid_until_mono: 0 },
      unknown_gpu: { gpus: [7] },
      no_vram: { vram_mib: 10_000 },
    }
    h.advance(1)
    for (const [reason, fields] of Object.entries(refusals)) {
      expect(h.start(reason, { epoch: 5, ...fields })).toMatchObject(refused(reason))
      expect(h.storage.kept.attempts.get(reason)).toBe(1)
      expect(h.start(reason, { epoch: 5 })).toMatchObject({ outcome: 'never_seen' })
    }
    expect(h.device.calls).toEqual(['launch new epoch'])
  })

  it('a refusal burns a later attempt while an earlier one still runs', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.start('a', { attempt: 2, node_boot: { counter: 0, random: 'old' } })).toMatchObject(
      refused('other_boot'),
    )
    h.exit('a')
    expect(h.start('a', { attempt: 2 })).toMatchObject({ outcome: 'never_seen' })
  })

  it('a stop, or any other command, burns an unknown attempt', () => {
    const h = new ServerCoreHarness()
    expect(h.stop('stopped')).toMatchObject({ outcome: 'never_seen' })
    expect(h.swapOut('swapped')).toMatchObject({ outcome: 'never_seen' })
    for (const taskId of ['stopped', 'swapped']) {
      expect(h.storage.kept.burned.get(taskId)).toBe(1)
      expect(h.start(taskId)).toMatchObject({ outcome: 'never_seen' })
    }
    expect(h.device.calls).toEqual([])
  })

  it('the server remembers a limited number of tasks, and forgets the oldest first (R3, R11)', () => {
    const seen = new SeenAttempts(new Map([['old', 3]]), new Map([['old', 3]]))
    for (let n = 1; n < MAX_SEEN_TASKS; n++) seen.add(`task-${n}`, 1)
    expect([seen.highest('old'), seen.isBurned('old', 3)]).toEqual([3, true])
    seen.burn('one more', 1)
    expect([seen.highest('old'), seen.isBurned('old', 3)]).toEqual([0, false])
    expect([
      seen.highest('one more'),
      seen.highest(`task-${MAX_SEEN_TASKS - 1}`),
      seen.highest('task-20000'),
    ]).toEqual([1, 1, 1])
    for (let n = 0; n < 2 * MAX_SEEN_TASKS; n++) {
      seen.burn(`more-${n}`, 1)
      if (seen.all().highest.size > MAX_SEEN_TASKS) throw new Error('it remembers too many')
    }
    expect(seen.all().burned.size).toBe(seen.all().highest.size)
  })
})

describe('a stop', () => {
  it('is sent to the device once, and the attempt is stopped when the device confirms it', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.stop('a')).toMatchObject({ ...accepted, residency: 'resident' })
    expect(h.stop('a')).toMatchObject(accepted)
    expect(h.start('a')).toMatchObject({ outcome: 'running' })
    h.exit('a', 137)
    expect(h.device.calls).toEqual(['launch a', 'stop a'])
    expect(h.bus.events().at(-1)).toMatchObject({ kind: 'finished', outcome: 'stopped', exit_code: 137 })
  })

  it('during a launch also ends the attempt, whether the launch works or not', () => {
    const h = new ServerCoreHarness()
    h.start('a')
    h.start('b')
    h.stop('a')
    h.stop('b')
    h.device.launched('a', { error: null, wantsGpu: true })
    h.exit('a', null)
    h.device.launched('b', { error: 'no such image' })
    h.settle()
    expect([h.bus.finishedOf('a'), h.bus.finishedOf('b')]).toEqual([['stopped'], ['stopped']])
    expect(h.isVramFree(0, 9_000)).toBe(true)
  })

  it('of one attempt does not affect another attempt of the same task', () => {
    const h = new ServerCoreHarness()
    h.run('a', { attempt: 2 })
    expect(h.stop('a', 1)).toMatchObject({ outcome: 'gone' })
    expect(h.stop('a', 3)).toMatchObject({ outcome: 'never_seen' })
    expect(h.device.calls).toEqual(['launch a/2'])
  })
})

describe('while the disk fails (R1)', () => {
  it('a start is refused without effect, and the attempt is burned', () => {
    const h = new ServerCoreHarness()
    h.storage.isFailing = true
    expect(h.start('a', { vram_mib: 9_000 })).toMatchObject(refused('disk_failed'))
    expect(h.start('b', { vram_mib: 9_999 })).toMatchObject(refused('disk_failed'))
    expect(h.stop('c')).toMatchObject(refused('disk_failed'))
    expect(h.stop('c')).toMatchObject(refused('disk_failed'))
    h.storage.isFailing = false
    expect(h.swapOut('c')).toMatchObject({ outcome: 'never_seen' })
    expect(h.storage.kept.burned.get('c')).toBe(1)
    expect(h.start('a')).toMatchObject({ outcome: 'never_seen' })
    expect(h.device.calls).toEqual([])
    expect(h.isVramFree(0, 9_000)).toBe(true)
    expect(Object.fromEntries(h.storage.kept.burned)).toMatchObject({ a: 1, b: 1, c: 1 })
  })

  it('commands of a new epoch have no effect, and the old epoch is refused too', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.storage.isFailing = true
    h.controllerChanges(4)
    expect(h.command(stopOf(h, 'a'), 4)).toMatchObject(refused('disk_failed'))
    expect(h.command(stopOf(h, 'a'), 1)).toMatchObject(refused('stale_epoch'))
    h.storage.isFailing = false
    expect(h.command(stopOf(h, 'a'), 4)).toMatchObject(accepted)
    expect(h.storage.kept.highestEpoch).toBe(4)
  })

  it('commands that change nothing durable are executed', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.storage.isFailing = true
    expect(h.swapOut('a')).toMatchObject(accepted)
    expect(h.stop('a')).toMatchObject(accepted)
  })

  it('a starting server does not send its hello', () => {
    const h = new ServerCoreHarness()
    h.storage.isFailing = true
    expect(() => h.restart()).toThrow('no space left')
  })
})

function startOf(h: ServerCoreHarness, taskId: string): Command {
  return {
    op: 'start',
    task_id: taskId,
    attempt: 1,
    valid_until_mono: h.mono + COMMAND_TTL_MS,
    node_boot: h.boot,
    gpus: [0],
    vram_mib: 1_000,
    gpu_mode: 'shared',
    noswap: 0,
    priority: 2,
    on_node_loss: 'wait',
    command: null,
  }
}

function stopOf(h: ServerCoreHarness, taskId: string): Command {
  return {
    op: 'stop',
    task_id: taskId,
    attempt: 1,
    valid_until_mono: h.mono + COMMAND_TTL_MS,
    node_boot: h.boot,
    reason: 'operator',
  }
}
