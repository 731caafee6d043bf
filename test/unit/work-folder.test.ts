/** The folder that contains the work folders of attempts. */
import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeWorkFolder } from '../../gpu-server/devices/task-places.ts'
import { KeptWork } from '../../gpu-server/files/kept-work.ts'
import { newGuardFolder } from '../support/guard-world.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777

describe('the work folder of a server', () => {
  it('that the server makes can be entered by tasks, and its ended attempts cannot', () => {
    const state = newGuardFolder()
    const folder = join(state, 'elsewhere/work')
    makeWorkFolder(folder, state)
    const ended = join(folder, '.ended')
    const limits = { retentionMs: 1, maxBytes: 1 }
    new KeptWork({ folder: ended, program: '/bin/true', limits, now: () => 0 }).close()
    expect([folder, ended].map(modeOf)).toEqual([0o711, 0o700])
  })

  it('is not made by what comes below it, which would close it to tasks', () => {
    const folder = join(newGuardFolder(), 'work/.ended')
    const limits = { retentionMs: 1, maxBytes: 1 }
    expect(() => new KeptWork({ folder, program: '/bin/true', limits, now: () => 0 })).toThrow('ENOENT')
  })

  it('that an operator made keeps its mode', () => {
    const folder = join(newGuardFolder(), 'work')
    mkdirSync(folder)
    chmodSync(folder, 0o750)
    makeWorkFolder(folder, '/elsewhere')
    expect(modeOf(folder)).toBe(0o750)
  })
})
