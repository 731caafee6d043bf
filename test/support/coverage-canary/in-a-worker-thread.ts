import { parentPort } from 'node:worker_threads'

function song(day: 'even' | 'odd'): string {
  if (day === 'odd') {
    return 'sings on odd days' // never runs
  }
  return 'sings in a worker thread' // runs
}

export function silentCanary(): string {
  return 'is never called' // never runs
}

parentPort?.postMessage(song('even')) // runs
