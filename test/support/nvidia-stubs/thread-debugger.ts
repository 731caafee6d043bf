/**
 * `thread-debugger.ts THREAD`: attaches to a thread like a debugger, without stopping it, prints `held`, and
 * detaches when it ends.
 */
import { TraceCalls } from '../../../gpu-server/devices/nvidia/trace-calls.ts'

const calls = await TraceCalls.load('koffi')
process.stdout.write(calls.seize(Number(process.argv[2])) ? 'held\n' : 'gone\n')
process.stdin.resume()
