/** The limits of uploads, and the removal of incomplete ones. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newPartialName, removePartialUploads } from '../../services/simulations/library/partial-uploads.ts'
import { UploadQuota, type UploadedFile } from '../../services/simulations/library/upload-quota.ts'

const MIB = 1_048_576
const LIMITS = { maxBytes: 10 * MIB, maxBytesPerOwner: 2 * MIB, minFreeBytes: 100 * MIB, minFreePercent: 5 }

let dataDir: string
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'headroom-uploads-'))))
afterEach(() => rmSync(dataDir, { recursive: true }))

function roomWith(kept: readonly UploadedFile[], freeMib = 1_000, diskMib = 1_000): UploadQuota {
  const ask = () => Promise.resolve({ bavail: freeMib, blocks: diskMib, bsize: MIB })
  return new UploadQuota({ folder: dataDir, limits: LIMITS, kept: () => Promise.resolve(kept), ask })
}

describe('The space for uploads', () => {
  it('is limited for each owner', async () => {
    const room = roomWith([
      { owner: 'alice', bytes: 1.5 * MIB },
      { owner: 'bob', bytes: MIB },
    ])
    const usage = await room.usageOf('alice')
    expect(usage).toEqual({ ownBytes: 1.5 * MIB, totalBytes: 2.5 * MIB })
    expect(room.whyNot(usage, 0.5 * MIB)).toBeNull()
    expect(room.whyNot(usage, 0.6 * MIB)).toBe(
      'The limit of 2 MiB for your uploads is reached. Delete one first (GET /usage shows their size).',
    )
  })

  it('is limited over all owners', async () => {
    const room = roomWith(Array.from({ length: 9 }, (_, i) => ({ owner: `u${i}`, bytes: MIB })))
    const usage = await room.usageOf('new')
    expect(room.whyNot(usage, MIB)).toBeNull()
    expect(room.whyNot(usage, MIB + 1)).toBe(
      'The limit of 10 MiB for all uploads is reached. Delete some first.',
    )
  })

  it.each([
    ['the megabytes', 99, 1_000, true],
    ['the megabytes', 100, 1_000, false],
    ['the percentage', 499, 10_000, true],
    ['the percentage', 500, 10_000, false],
  ])('leaves %s of the disk free: %i of %i MiB', async (_, freeMib, diskMib, isShort) => {
    const why = await roomWith([], freeMib, diskMib).whyDiskIsShort()
    expect(why).toBe(isShort ? 'The disk is low on space: uploads are refused for now.' : null)
  })
})

describe('Incomplete uploads', () => {
  const DEAD_PID = 2 ** 22 + 1

  it('are removed at a start, except those of running processes, and no other file is removed', () => {
    const traces = join(dataDir, 'simulations/traces')
    const scenarios = join(dataDir, 'simulations/scenarios')
    for (const folder of [traces, scenarios]) mkdirSync(folder, { recursive: true })
    const uuid = '5f0c9a52-1d3e-4b7a-9c11-000000000001'
    const partial = [`.upload-${uuid}`, `.upload-${DEAD_PID}-${uuid}`, newPartialName()]
    const foreign = `.upload-${process.ppid}-${uuid}`
    for (const name of [...partial, foreign]) {
      mkdirSync(join(traces, name))
      writeFileSync(join(traces, name, 'sent'), 'x')
    }
    writeFileSync(join(traces, 'mine.trace.jsonl'), 'x')
    writeFileSync(join(scenarios, 'a.scenario.yaml'), 'x')
    writeFileSync(join(scenarios, 'a.scenario.yaml.new'), 'x')
    expect(removePartialUploads(dataDir)).toBe(4)
    expect(new Set(readdirSync(traces))).toEqual(new Set([foreign, 'mine.trace.jsonl']))
    expect(readdirSync(scenarios)).toEqual(['a.scenario.yaml'])
  })

  it('are searched without creating a data folder', () => {
    expect(removePartialUploads(join(dataDir, 'none'))).toBe(0)
    expect(existsSync(join(dataDir, 'none'))).toBe(false)
  })
})
