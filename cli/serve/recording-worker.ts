/** The thread that folds the oldest file of a recording into the checkpoint of the next one. */
import { parentPort, workerData } from 'node:worker_threads'
import { foldRecording } from './recording-fold.ts'
import { givesWay, NICE_RUN } from '../simulations/low-priority.ts'

givesWay(NICE_RUN)
const { first, next } = workerData as { readonly first: string; readonly next: string }
await foldRecording(first, next)
parentPort?.postMessage('done')
