/**
 * `helper-owner.ts LIBRARY`: starts a helper, locks process 11 with it, and prints the helper's pid. For a
 * test that kills it.
 */
import { HelperProcess } from '../../../gpu-server/devices/nvidia/helper-process.ts'

const helper = new HelperProcess({
  role: 'cuda',
  library: process.argv[2] ?? '',
  ffiModule: 'koffi',
  onNote: () => {},
})
await helper.request('attach', {}, 60_000)
void helper.request('lock', { pid: 11, timeoutMs: 1000 }, 60_000)
process.stdout.write(`${helper.pid}\n`)
