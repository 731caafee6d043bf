/**
 * `thread-debugger.ts THREAD`: holds a thread as a debugger does, without stopping it, says `held`, and lets
 * go of it with its own end.
 */
import { TraceCalls } from '../../../gpu-server/devices/nvidia/trace-calls.ts'

const calls = await TraceCalls.load('koffi')
process.stdout.write(calls.seize(Number(process.argv[2])) ? 'held\n' : 'gone\n')
process.stdin.resume()
