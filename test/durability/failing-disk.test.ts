/**
 * The disk is full, or fails: every acknowledged change is stored, and the failure is reported in one line.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { mountSmallDisk, unmountSmallDisk } from '../support/small-disk.ts'
import { controllerOn, newFolder, type ControllerOn } from './controller-on.ts'

/** More than fits on any disk of this test. */
const MAX_TASKS = 50_000
const WRITERS = 8
const TIMEOUT_MS = 120_000

interface Outcome {
  readonly acknowledged: readonly string[]
  /** Unsuccessful responses by status; 0 means that the connection was lost. */
  readonly refused: ReadonlyMap<number, number>
}

/** Submits until the controller accepts no more. */
async function fill(controller: ControllerOn): Promise<Outcome> {
  const acknowledged: string[] = []
  const refused = new Map<number, number>()
  const url = `${controller.url()}/tasks`
  let isOver = false
  const write = async (): Promise<void> => {
    while (!isOver && acknowledged.length < MAX_TASKS) {
      const body = JSON.stringify({ vram_mib: 1_000, labels: { filler: 'x'.repeat(40) } })
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body,
      }).catch(() => null)
      if (answer?.status === 201) acknowledged.push(((await answer.json()) as { readonly id: string }).id)
      else {
        isOver = true
        refused.set(answer?.status ?? 0, (refused.get(answer?.status ?? 0) ?? 0) + 1)
      }
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
  return { acknowledged, refused }
}

async function ended(controller: ControllerOn): Promise<void> {
  await expect.poll(() => controller.member.isRunning, { timeout: 15_000 }).toBe(false)
}

async function expectAll(controller: ControllerOn, ids: readonly string[]): Promise<void> {
  for (const id of ids) expect((await fetch(`${controller.url()}/tasks/${id}`)).status, id).toBe(200)
}

describe('a full disk', () => {
  it(
    'causes 503 and an exit with the reason, and with more space every acknowledged task exists',
    async (context) => {
      const disk = newFolder()
      const why = mountSmallDisk(disk, 8)
      if (why !== null) {
        console.log(`skipped: ${why}`)
        return context.skip(why)
      }
      try {
        const controller = controllerOn(join(disk, 'data'))
        await controller.start()
        const readyz = await fetch(`${controller.url()}/readyz`)
        expect(readyz.status).toBe(503)
        expect(((await readyz.json()) as { checks: object[] }).checks).toContainEqual(
          expect.objectContaining({
            name: 'disk',
            ok: false,
            detail: 'the disk of the data folder is low on space' as unknown,
          }),
        )
        const { acknowledged, refused } = await fill(controller)
        expect(acknowledged.length).toBeGreaterThan(100)
        expect([...refused.keys()].every((status) => status === 503 || status === 0)).toBe(true)
        await ended(controller)
        expect(controller.member.output).toMatch(
          /^headroom: the store failed: the disk is full: .*free some space, then start again$/m,
        )
        expect(spawnSync('mount', ['-o', 'remount,size=64m', disk]).status).toBe(0)
        await controller.start()
        await expectAll(controller, acknowledged)
        await controller.member.end('SIGTERM')
        expect((await verifyStore(join(disk, 'data', STORE_FILE))).problems).toEqual([])
        console.log(
          `full disk: ${acknowledged.length} tasks acknowledged, all there; refused: ` +
            `${JSON.stringify([...refused])}`,
        )
      } finally {
        unmountSmallDisk(disk)
      }
    },
    TIMEOUT_MS,
  )
})

describe('a failing disk (a write past a limit is an I/O error)', () => {
  it(
    'causes no false acknowledgement, and every acknowledged task exists afterwards',
    async () => {
      const data = join(newFolder(), 'data')
      const failing = controllerOn(data, {}, 'ulimit -f 3000')
      await failing.start()
      const { acknowledged, refused } = await fill(failing)
      expect(acknowledged.length).toBeGreaterThan(100)
      expect([...refused.keys()].every((status) => status === 503 || status === 0)).toBe(true)
      await ended(failing)
      expect(failing.member.output).toMatch(
        /^headroom: the store failed: the disk failed on .*check the disk, then start again$/m,
      )
      const controller = controllerOn(data)
      await controller.start()
      await expectAll(controller, acknowledged)
      await controller.member.end('SIGTERM')
      expect((await verifyStore(join(data, STORE_FILE))).problems).toEqual([])
      console.log(
        `failing disk: ${acknowledged.length} tasks acknowledged, all there; refused: ` +
          `${JSON.stringify([...refused])}`,
      )
    },
    TIMEOUT_MS,
  )
})
