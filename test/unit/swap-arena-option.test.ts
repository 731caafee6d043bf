import { tmpdir, totalmem } from 'node:os'
import { expect, test } from 'vitest'
import { swapArenaSize } from '../../cli/gpu-server/option-values.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { acceleratorOf } from '../../services/gpu-server/accelerator-of.ts'
import { swapArenaOf } from '../../services/gpu-server/swap-arena.ts'

const MIB = 1024 * 1024
const STATE = '/var/lib/headroom'

test('There is no arena by default, and the option goes before the variable', () => {
  expect(swapArenaOf({}, {}, STATE).bytes).toBe(0)
  const place = swapArenaOf({}, { NODE_SWAP_ARENA: '64Mi' }, STATE)
  expect(place.bytes).toBe(64 * MIB)
  expect(place.file).toMatch(/^\/dev\/shm\/headroom-swap-arena-[0-9a-f]{16}$/)
  expect(place.records).toBe('/var/lib/headroom/swap-arena')
  expect(swapArenaOf({ swapArena: 0 }, { NODE_SWAP_ARENA: '64Mi' }, STATE).bytes).toBe(0)
  expect(swapArenaOf({}, {}, '/elsewhere').file).not.toBe(place.file)
})

test.each([
  [{ NODE_SWAP_ARENA: 'much' }, 'NODE_SWAP_ARENA'],
  [{ NODE_SWAP_ARENA: '-1' }, 'NODE_SWAP_ARENA'],
  [{ NODE_SWAP_ARENA: '63' }, 'at least 64 MiB'],
  [{ NODE_SWAP_ARENA: `${Math.ceil(totalmem() / MIB) + 1}` }, /this host has \d+ MiB of memory/],
])('An arena of %j is refused', (env, why) => {
  expect(() => swapArenaOf({}, env, STATE)).toThrow(why)
})

test('An arena is refused where its folder is missing or on a disk', () => {
  expect(() => swapArenaOf({ swapArena: 64 }, {}, STATE, '/nowhere')).toThrow('/nowhere cannot be read')
  expect(() => swapArenaOf({ swapArena: 64 }, {}, STATE, '/proc')).toThrow('/proc is not a tmpfs')
})

test('An arena needs NVIDIA GPUs', () => {
  const clock = createSystemClock(() => 0)
  const arena = swapArenaOf({ swapArena: 64 }, {}, STATE)
  const choice = { device: 'process', inventory: `${tmpdir()}/gpus.yaml` } as const
  expect(() => acceleratorOf(choice, clock, () => {}, arena)).toThrow('--swap-arena requires NVIDIA GPUs')
  clock.stop()
})

test.each(['', 'much', '64G', '-1', '1.5Gi', '2000000000'])('The option refuses %j', (text) => {
  expect(() => swapArenaSize(text)).toThrow('It must be a number of MiB, or a size in Mi or Gi')
})

test('The option accepts MiB and sizes', () => {
  expect(swapArenaSize('128')).toBe(128)
  expect(swapArenaSize('64Gi')).toBe(65_536)
})
