/** Runs an endless worker process and prints its process id; the parent kills this process. */
import { readFileSync } from 'node:fs'
import { JobProcess } from '../../services/workers/job-process.ts'
import type { TryingJob } from './trying-worker.ts'

const worker = new JobProcess<TryingJob, unknown>(new URL('./trying-worker.ts', import.meta.url))
let isTold = false
await worker.ask({ kind: 'work' }, () => {
  if (isTold) return
  isTold = true
  process.stdout.write(readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8'))
})
