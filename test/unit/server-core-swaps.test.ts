import { describe, expect, it } from 'vitest'
import { ServerCoreHarness } from '../support/server-core-harness.ts'

const accepted = { outcome: 'accepted', reason: null }
const refused = (reason: string) => ({ outcome: 'refused', reason })

/** Each GPU has 9000 MiB for tasks. */
const ROOM_MIB = 9_000

describe('a swap-out is refused (R12)', () => {
  it('for a noswap task, with or without force_active', () => {
    const h = new ServerCoreHarness()
    h.run('a', { noswap: 1, wantsGpu: true })
    expect(h.swapOut('a')).toMatchObject(refused('noswap'))
    expect(h.swapOut('a', { force_active: true })).toMatchObject(refused('noswap'))
    h.growth('set_noswap', 'a', { noswap: 0 })
    expect(h.swapOut('a', { force_active: true })).toMatchObject(accepted)
  })

  it('for a task that wants the GPU, unless max_residency requested it', () => {
    const h = new ServerCoreHarness()
    h.run('a', { wantsGpu: true })
    h.run('b')
    h.device.listener?.gpuWanted('b', 1)
    expect(h.swapOut('a')).toMatchObject(refused('wants_gpu'))
    expect(h.swapOut('b')).toMatchObject(refused('wants_gpu'))
    h.device.listener?.gpuUsed('b', 1, 0)
    expect(h.swapOut('b')).toMatchObject(accepted)
    expect(h.swapOut('a', { force_active: true })).toMatchObject(accepted)
  })

  it('for another generation than the current one, and not for a repeated command', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.swapOut('a', { generation: 0 })).toMatchObject(refused('stale_generation'))
    expect(h.swapOut('a', { generation: 2 })).toMatchObject(refused('stale_generation'))
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({ ...accepted, residency: 'swapping_out' })
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({ ...accepted, residency: 'swapping_out' })
    expect(h.swapOut('a', { generation: 0 })).toMatchObject(refused('stale_generation'))
    h.device.suspended('a')
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({
      ...accepted,
      residency: 'swapped_out',
      generation: 2,
    })
    expect(h.swapIn('a', { generation: 1 })).toMatchObject(refused('stale_generation'))
    h.swapIn('a')
    h.device.resumed('a')
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({
      ...refused('stale_generation'),
      residency: 'resident',
      generation: 3,
    })
    expect(h.device.calls).toEqual(['launch a', 'suspend a', 'resume a'])
  })

  it('for a generation before a failed swap, unless the command is the one that failed', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.swapOut('a')
    h.device.suspended('a', 'woke_while_locked')
    expect(h.swapOut('a', { generation: 1 })).toMatchObject({
      ...accepted,
      residency: 'resident',
      generation: 2,
    })
    expect(h.swapIn('a', { generation: 1 })).toMatchObject(refused('stale_generation'))
    expect(h.device.calls).toEqual(['launch a', 'suspend a'])
    h.swapOut('a', { generation: 2 })
    h.device.suspended('a', 'copy_failed')
    expect(h.swapOut('a', { generation: 1 })).toMatchObject(refused('stale_generation'))
  })

  it('when the task is not resident: launching, swapped out, moving, or stopping', () => {
    const h = new ServerCoreHarness()
    h.start('new')
    expect(h.swapOut('new', { generation: 0 })).toMatchObject(refused('contrary'))
    h.run('out')
    h.swappedOut('out')
    expect(h.swapOut('out', { generation: 2 })).toMatchObject(refused('contrary'))
    h.swapIn('out')
    expect(h.swapOut('out', { generation: 2 })).toMatchObject(refused('contrary'))
    h.run('ending')
    h.stop('ending')
    expect(h.swapOut('ending')).toMatchObject(refused('contrary'))
  })

  it('when host memory is short, counting all GPUs of the task', () => {
    const h = new ServerCoreHarness({ gpus: 2, hostSwapMib: 6_000 })
    h.run('two', { gpus: [0, 1], vram_mib: 3_001 })
    h.run('one', { gpus: [0], vram_mib: 4_000 })
    h.run('other', { gpus: [1], vram_mib: 2_001 })
    expect(h.swapOut('two')).toMatchObject(refused('no_host_memory'))
    expect(h.swapOut('one')).toMatchObject(accepted)
    expect(h.swapOut('other')).toMatchObject(refused('no_host_memory'))
    h.device.suspended('one', 'copy_failed')
    expect(h.swapOut('other')).toMatchObject(accepted)
  })
})

describe('a swap-in is refused (R12)', () => {
  it('when its VRAM does not fit next to the reserve', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 5_000 })
    h.swappedOut('a')
    h.run('b', { vram_mib: 4_001 })
    expect(h.swapIn('a')).toMatchObject(refused('no_vram'))
    h.exit('b')
    h.device.setForeign(0, 4_001)
    expect(h.swapIn('a')).toMatchObject(refused('no_vram'))
    h.device.setForeign(0, 4_000)
    expect(h.swapIn('a')).toMatchObject({ ...accepted, residency: 'swapping_in' })
  })

  it('for another generation, or a task that is not swapped out; a repeat is accepted', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    expect(h.swapIn('a')).toMatchObject(refused('contrary'))
    h.swapOut('a')
    expect(h.swapIn('a')).toMatchObject(refused('contrary'))
    h.device.suspended('a')
    expect(h.swapIn('a', { generation: 1 })).toMatchObject(refused('stale_generation'))
    expect(h.swapIn('a')).toMatchObject(accepted)
    expect(h.swapIn('a')).toMatchObject(accepted)
    h.device.resumed('a')
    expect(h.swapIn('a', { generation: 2 })).toMatchObject({
      ...accepted,
      residency: 'resident',
      generation: 3,
    })
    expect(h.device.calls).toEqual(['launch a', 'suspend a', 'resume a'])
  })
})

describe('VRAM and host memory are counted once (R12)', () => {
  it('a swap-out keeps VRAM until its last byte is copied, and uses host memory from the first', () => {
    const h = new ServerCoreHarness({ hostSwapMib: 5_000 })
    h.run('a', { vram_mib: 5_000 })
    h.run('b', { vram_mib: 4_000 })
    h.swapOut('a')
    expect(h.isVramFree(0, 1)).toBe(false)
    expect(h.swapOut('b')).toMatchObject(refused('no_host_memory'))
    h.device.suspended('a')
    expect([h.isVramFree(0, 5_000), h.isVramFree(0, 5_001)]).toEqual([true, false])
    expect(h.swapOut('b')).toMatchObject(refused('no_host_memory'))
  })

  it('a swap-in uses VRAM from the first byte, and host memory until its last byte is copied', () => {
    const h = new ServerCoreHarness({ hostSwapMib: 5_000 })
    h.run('a', { vram_mib: 5_000 })
    h.swappedOut('a')
    h.run('b', { vram_mib: 4_000 })
    h.swapIn('a')
    expect(h.isVramFree(0, 1)).toBe(false)
    expect(h.swapOut('b')).toMatchObject(refused('no_host_memory'))
    h.device.resumed('a', 'copy_failed')
    expect([h.isVramFree(0, 5_000), h.isVramFree(0, 5_001)]).toEqual([true, false])
    expect(h.swapOut('b')).toMatchObject(refused('no_host_memory'))
    h.swapIn('a')
    h.device.resumed('a')
    expect(h.swapOut('b')).toMatchObject(accepted)
  })

  const phases: Record<string, (h: ServerCoreHarness) => void> = {
    'while it is launched': () => {},
    'while it is resident': (h) => h.device.launched('a', { error: null, wantsGpu: false }),
    'while it leaves': (h) => {
      h.device.launched('a', { error: null, wantsGpu: false })
      h.swapOut('a')
    },
    'while it is out': (h) => {
      h.device.launched('a', { error: null, wantsGpu: false })
      h.swappedOut('a')
    },
    'while it returns': (h) => {
      h.device.launched('a', { error: null, wantsGpu: false })
      h.swappedOut('a')
      h.swapIn('a')
    },
  }
  it.each(Object.entries(phases))(
    'a task that ends %s releases everything, and its late answers have no effect',
    (_name, reach) => {
      for (const grows of ['not', 'before', 'after']) {
        const h = new ServerCoreHarness({ gpus: 2, hostSwapMib: 8_000 })
        h.start('a', { gpus: [0, 1], vram_mib: 2_000 })
        if (grows === 'before') h.growth('grant', 'a', { mib: 3_000 })
        reach(h)
        if (grows === 'after') h.growth('grant', 'a', { mib: 4_000 })
        const process = h.device.processes.get('a')
        h.exit('a', 1)
        for (let late = 0; late < 2; late++) {
          process?.moved?.('done')
          process?.done({ error: 'too late' })
          h.device.listener?.exited('a', 1, {
            exitCode: 0,
            detail: null,
            didEndItself: true,
            didLeaseEnd: false,
          })
          h.device.listener?.gpuWanted('a', 1)
          h.device.listener?.allocationWanted('a', 1, 9_000)
        }
        h.settle()
        expect(
          h.bus
            .events()
            .map((event) => event.kind)
            .lastIndexOf('finished'),
        ).toBe(h.bus.events().length - 1)
        expect(h.bus.finishedOf('a')).toEqual(['failed'])
        h.run('all', { gpus: [0, 1], vram_mib: 4_000 })
        h.swappedOut('all')
        h.run('of it', { gpus: [0, 1], vram_mib: ROOM_MIB })
      }
    },
  )

  it('a failed launch releases its VRAM once, even if the next attempt has begun', () => {
    const h = new ServerCoreHarness()
    h.start('a', { vram_mib: 6_000 })
    const process = h.device.processes.get('a')
    h.exit('a', null)
    h.start('a', { attempt: 2, vram_mib: 6_000 })
    process?.done({ error: 'it was killed' })
    expect(h.isVramFree(0, 3_001)).toBe(false)
    h.device.launched('a', { error: null, wantsGpu: false })
    h.settle()
    expect(h.bus.events().map((event) => `${event.kind} ${event.attempt}`)).toEqual([
      'finished 1',
      'started 2',
    ])
  })

  it('a failed launch is a failed attempt with the reason', () => {
    const h = new ServerCoreHarness()
    h.start('a')
    h.device.launched('a', { error: `no such image\0${'x'.repeat(9_000)}` })
    h.settle()
    expect(h.bus.events()).toMatchObject([{ kind: 'finished', outcome: 'failed', exit_code: null }])
    expect(h.isVramFree(0, ROOM_MIB)).toBe(true)
  })
})

describe('the end of a swap is reported', () => {
  it('with its generation, and with a reason if it failed', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.swapOut('a')
    h.device.suspended('a', 'woke_while_locked')
    h.swapOut('a')
    h.device.suspended('a')
    h.swapIn('a')
    h.device.resumed('a', 'no_vram')
    h.swapIn('a')
    h.device.resumed('a')
    h.settle()
    expect(
      h.bus
        .events()
        .flatMap((event) =>
          event.kind === 'residency' ? [[event.residency, event.generation, event.because]] : [],
        ),
    ).toEqual([
      ['resident', 2, 'woke_while_locked'],
      ['swapped_out', 3, null],
      ['swapped_out', 4, 'no_vram'],
      ['resident', 5, null],
    ])
  })
})

describe('an allocation that waits for VRAM', () => {
  const wanting = (h: ServerCoreHarness, taskId: string, mib: number) => {
    h.device.listener?.allocationWanted(taskId, 1, mib)
    h.settle()
  }

  it('is requested from the controller, and succeeds when it is granted', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 3_000 })
    wanting(h, 'a', 5_000)
    expect(h.bus.events().at(-1)).toMatchObject({ kind: 'allocation_wanted', task_id: 'a', mib: 5_000 })
    expect(h.device.calls).toEqual(['launch a'])
    expect(h.growth('grant', 'a', { mib: 5_000 })).toMatchObject(accepted)
    expect(h.device.calls).toEqual(['launch a', 'grant 5000 a'])
    expect([h.isVramFree(0, 4_000), h.isVramFree(0, 4_001)]).toEqual([true, false])
  })

  it('fails when it is refused', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    wanting(h, 'a', 5_000)
    expect(h.growth('refuse_growth', 'a', { mib: 1_000, reason: 'WAITING_PHYSICAL_VRAM' })).toMatchObject(
      accepted,
    )
    expect(h.device.calls).toEqual(['launch a', 'refuse a'])
    expect(h.isVramFree(0, 8_000)).toBe(true)
  })

  it('is not granted beyond the reserve while resident, launching, or returning', () => {
    const h = new ServerCoreHarness({ gpus: 3 })
    h.run('resident', { gpus: [0] })
    h.start('launching', { gpus: [1] })
    h.run('returning', { gpus: [2] })
    h.swappedOut('returning')
    h.swapIn('returning')
    for (const taskId of ['resident', 'launching', 'returning']) {
      expect(h.growth('grant', taskId, { mib: 9_001 })).toMatchObject(refused('no_vram'))
      expect(h.growth('grant', taskId, { mib: 9_000 })).toMatchObject(accepted)
    }
    expect([0, 1, 2].map((gpu) => h.isVramFree(gpu, 1))).toEqual([false, false, false])
  })

  it('within the granted VRAM needs no victim', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 3_000 })
    wanting(h, 'a', 3_000)
    expect(h.device.calls).toEqual(['launch a', 'grant 3000 a'])
    expect(h.bus.events().map((event) => event.kind)).toEqual(['started'])
  })

  it('is answered once, and a late grant never replaces a larger one', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 3_000 })
    wanting(h, 'a', 5_000)
    h.growth('grant', 'a', { mib: 5_000 })
    wanting(h, 'a', 7_000)
    h.growth('grant', 'a', { mib: 7_000 })
    expect(h.growth('grant', 'a', { mib: 5_000 })).toMatchObject(accepted)
    expect(h.growth('grant', 'a', { mib: 7_000 })).toMatchObject(accepted)
    expect(h.device.calls).toEqual(['launch a', 'grant 5000 a', 'grant 7000 a'])
    expect([h.isVramFree(0, 2_000), h.isVramFree(0, 2_001)]).toEqual([true, false])
  })

  it('is requested again from a new controller until it is answered', () => {
    const h = new ServerCoreHarness()
    const asked = () =>
      h.bus.events().flatMap((event) => (event.kind === 'allocation_wanted' ? [event.mib] : []))
    h.run('a', { vram_mib: 3_000 })
    wanting(h, 'a', 5_000)
    h.advance(20_000)
    expect(asked()).toEqual([5_000])
    h.bus.epoch = 2
    h.advance(20_000)
    expect(asked()).toEqual([5_000, 5_000])
    h.growth('grant', 'a', { mib: 5_000 })
    h.bus.epoch = 3
    h.advance(20_000)
    expect(asked()).toEqual([5_000, 5_000])
  })

  it('granted during or after a swap-out succeeds after the return with the larger demand', () => {
    for (const phase of ['leaving', 'out']) {
      const h = new ServerCoreHarness({ hostSwapMib: 3_000 })
      h.run('a', { vram_mib: 3_000 })
      wanting(h, 'a', 8_000)
      h.swapOut('a')
      if (phase === 'out') h.device.suspended('a')
      expect(h.growth('grant', 'a', { mib: 8_000, reason: 'after_return' })).toMatchObject(accepted)
      if (phase === 'leaving') h.device.suspended('a')
      h.run('b', { vram_mib: 1_001 })
      expect(h.swapIn('a')).toMatchObject(refused('no_vram'))
      h.exit('b')
      expect(h.swapIn('a')).toMatchObject(accepted)
      expect([h.isVramFree(0, 1_000), h.isVramFree(0, 1_001)]).toEqual([true, false])
      expect(h.device.calls.filter((call) => call.startsWith('grant'))).toEqual([])
      h.device.resumed('a')
      expect(h.device.calls.at(-1)).toBe('grant 8000 a')
      h.advance(10_000)
      expect(h.report('a')).toMatchObject({ vram_mib: 8_000, residency: 'resident' })
      h.exit('a')
      expect(h.isVramFree(0, ROOM_MIB)).toBe(true)
    }
  })

  it('granted during a swap-out that fails waits until the VRAM is free', () => {
    const h = new ServerCoreHarness()
    h.run('a', { vram_mib: 3_000 })
    h.run('b', { vram_mib: 5_000 })
    wanting(h, 'a', 6_000)
    h.swapOut('a')
    h.growth('grant', 'a', { mib: 6_000, reason: 'after_return' })
    h.device.suspended('a', 'woke_while_locked')
    h.settle()
    expect([h.isVramFree(0, 1_000), h.isVramFree(0, 1_001)]).toEqual([true, false])
    expect(h.device.calls).not.toContain('grant 6000 a')
    h.exit('b')
    expect(h.device.calls).toContain('grant 6000 a')
    expect([h.isVramFree(0, 3_000), h.isVramFree(0, 3_001)]).toEqual([true, false])
  })

  it('granted late to a task that ends or is swapped out again is dropped', () => {
    for (const how of ['ends', 'leaves']) {
      const h = new ServerCoreHarness()
      h.run('a', { vram_mib: 3_000 })
      h.run('b', { vram_mib: 6_000 })
      wanting(h, 'a', 4_000)
      h.swapOut('a')
      h.growth('grant', 'a', { mib: 4_000, reason: 'after_return' })
      h.device.suspended('a', 'copy_failed')
      if (how === 'ends') h.exit('a')
      else h.swappedOut('a')
      h.exit('b')
      expect(h.device.calls).not.toContain('grant 4000 a')
      expect(h.isVramFree(0, ROOM_MIB)).toBe(true)
    }
  })
})

describe('the use of a GPU', () => {
  it('is reported when it changes, and after each use by an idle task', () => {
    const h = new ServerCoreHarness()
    h.run('a')
    h.advance(10_000)
    h.device.listener?.gpuUsed('a', 1, 10_000)
    h.device.listener?.gpuWanted('a', 1)
    h.device.listener?.gpuWanted('a', 1)
    h.device.listener?.gpuUsed('a', 1, 1_500)
    h.device.listener?.gpuUsed('a', 1, 2_000)
    h.device.listener?.gpuUsed('a', 1, 500)
    h.device.listener?.gpuUsed('a', 2, 0)
    h.settle()
    const uses = h.bus.events().flatMap((event) => ('idle_ms' in event ? [[event.kind, event.idle_ms]] : []))
    expect(uses).toEqual([
      ['gpu_wanted', 0],
      ['gpu_used', 1_500],
      ['gpu_used', 500],
    ])
  })

  it('before the start is reported with the start', () => {
    const h = new ServerCoreHarness()
    h.start('a')
    h.device.listener?.gpuWanted('a', 1)
    h.device.launched('a', { error: null, wantsGpu: true })
    h.settle()
    expect(h.bus.events()).toMatchObject([{ kind: 'started', wants_gpu: true }])
  })
})
