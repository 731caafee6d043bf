/**
 * `helper-owner.ts LIBRARY [ARENA PROC]`: starts a helper, begins to lock process 11 with it, or to store it
 * in the swap arena, and prints the helper's pid. For a test that kills it.
 */
import type { ArenaPlace } from '../../../gpu-server/devices/nvidia/swap-arena.ts'
import { HelperProcess } from '../../../gpu-server/devices/nvidia/helper-process.ts'

const [library = '', arena, proc] = process.argv.slice(2)
const helper = new HelperProcess({
  role: 'cuda',
  library,
  ffiModule: 'koffi',
  ...(arena === undefined || proc === undefined ? {} : { arena: JSON.parse(arena) as ArenaPlace, proc }),
  onNote: () => {},
})
await helper.request('attach', {}, 60_000)
if (arena !== undefined) {
  await helper.request('reserve', { pid: 11, mibs: [3], freshMib: 3 }, 60_000)
  await helper.request('lock', { pid: 11, timeoutMs: 1000 }, 60_000)
  void helper.request('store', { pid: 11 }, 60_000)
} else void helper.request('lock', { pid: 11, timeoutMs: 1000 }, 60_000)
process.stdout.write(`${helper.pid}\n`)
