import { describe, expect, it } from 'vitest'
import { monitorDisk, ownChecks } from '../../services/controller/readiness.ts'
import type { Controller } from '../../controller/controller.ts'

function failing(status: { isFaulty: boolean; epoch: number }, delayS = 0) {
  return ownChecks({ status } as Controller, { eventLoopDelayMaxSeconds: () => delayS }).filter(
    ({ ok }) => !ok,
  )
}

describe('the checks of readyz', () => {
  it('pass for a controller that has read its store and whose event loop is on time', () => {
    expect(failing({ isFaulty: false, epoch: 1 })).toEqual([])
  })

  it('name what is wrong', () => {
    expect(failing({ isFaulty: true, epoch: 1 })).toEqual([
      { name: 'store', ok: false, detail: 'the store has failed' },
    ])
    expect(failing({ isFaulty: false, epoch: 0 })).toMatchObject([{ name: 'recovery' }])
    expect(failing({ isFaulty: false, epoch: 1 }, 7.25)).toEqual([
      { name: 'event_loop', ok: false, detail: 'it was 7.3 s late' },
    ])
  })
})

describe('the disk check', () => {
  it('never waits for the disk', async () => {
    const disk = monitorDisk('/')
    expect(disk.check()).toEqual({ name: 'disk', ok: true, detail: 'not known' })
    await expect.poll(() => disk.freeBytes()).toBeGreaterThan(0)
    expect(disk.check()).toMatchObject({ ok: true, detail: 'ok' })
    disk.stop()
  })

  it('fails on an almost full disk', async () => {
    const disk = monitorDisk('/', async () => ({ bavail: 10, bsize: 1_048_576 }))
    await expect
      .poll(() => disk.check())
      .toEqual({ name: 'disk', ok: false, detail: 'the disk of the data folder is low on space' })
    disk.stop()
  })

  it('passes if the free space is unknown', async () => {
    const disk = monitorDisk('/', () => Promise.reject(new Error('EIO')))
    await Promise.resolve()
    expect([disk.freeBytes(), disk.check().ok]).toEqual([null, true])
    disk.stop()
  })
})
