/**
 * The data folder of a controller whose demonstration has reached the present. On a new store a controller
 * lets two hours pass first, which costs 6 s of CPU, so the tests of one run share the folder.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { untilPresent, serve } from './served.ts'

const LOOK_EVERY_MS = 100

/** Copies the folder to `dataDir`, which must not exist. */
export async function demonstrationIn(dataDir: string): Promise<void> {
  cpSync(await sharedFolder(), dataDir, { recursive: true })
}

/** The first caller of the run makes the folder; the others wait for its outcome. */
async function sharedFolder(): Promise<string> {
  const place = process.env['HEADROOM_TEST_DEMONSTRATION']
  if (place === undefined) throw new Error('this project has no demonstration')
  const [data, outcome] = [join(place, 'data'), join(place, 'outcome')]
  if (isFirst(join(place, 'begun'))) writeFileSync(outcome, await faultOf(make(data)), { flush: true })
  while (!existsSync(outcome)) await pause(LOOK_EVERY_MS)
  const fault = readFileSync(outcome, 'utf8')
  if (fault !== '') throw new Error(`the demonstration was not made: ${fault}`)
  return data
}

function isFirst(mark: string): boolean {
  try {
    mkdirSync(mark)
    return true
  } catch {
    return false
  }
}

const faultOf = (made: Promise<void>): Promise<string> =>
  made.then(
    () => '',
    (error: unknown) => String(error),
  )

async function make(dataDir: string): Promise<void> {
  const served = await serve(dataDir)
  await untilPresent(served.url)
  served.process.kill('SIGTERM')
  const code = await served.ended
  if (code !== 0) throw new Error(`its controller ended with ${code}: ${served.output()}`)
}
