/** The thread that compacts the oldest file of a recording into the checkpoint of the next one. */
import { parentPort, workerData } from 'node:worker_threads'
import { compactRecording } from './recording.ts'
import { lowerThreadPriority, NICE_RUN } from '../workers/low-priority.ts'

lowerThreadPriority(NICE_RUN)
const { first, next } = workerData as { readonly first: string; readonly next: string }
await compactRecording(first, next)
parentPort?.postMessage('done')
