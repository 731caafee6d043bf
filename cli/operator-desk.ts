/** The REST interface inside a simulated world: what an operator of a scenario asks goes through the real routes, while virtual time stands still. */
import { setImmediate } from 'node:timers/promises'
import { createApi } from '../controller/api/server.ts'
import type { Commands } from '../controller/engine/commands.ts'
import type { OperatorDesk } from '../simulator/operator-agenda.ts'
import type { OpenDesk } from '../simulator/run.ts'
import { packageVersion } from './package-info.ts'

/** Turns of the event loop that an answer may take. */
const MAX_TURNS = 100_000

export const openDesk: OpenDesk = async (world, pump): Promise<OperatorDesk> => {
  const { commands, views } = world.controller
  let isCommanded = false
  const app = createApi({
    commands: noticing(commands, () => {
      isCommanded = true
    }),
    views,
    version: packageVersion(),
    fleet: 'simulated',
    inVirtualTime: true,
  })
  await app.ready()
  return {
    async ask(method, path, body) {
      isCommanded = false
      let isAnswered = false
      const withBody = body === null ? {} : { payload: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const answer = app.inject({ method, url: path, ...withBody }).finally(() => {
        isAnswered = true
      })
      // The world moves only once the request has reached the controller, so that it makes no difference how long HTTP takes.
      for (let turn = 0; !isAnswered && turn < MAX_TURNS; turn++) {
        await setImmediate()
        if (isCommanded) await pump(() => isAnswered)
      }
      if (!isAnswered) throw new Error(`${method.toUpperCase()} ${path} is not answered in virtual time`)
      const { statusCode, body: text } = await answer
      return { status: statusCode, text }
    },
    close: () => app.close(),
  }
}

/** The same commands; `notice` hears of each. */
function noticing(commands: Commands, notice: () => void): Commands {
  return new Proxy(commands, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return (...args: readonly unknown[]): unknown => {
        notice()
        return Reflect.apply(member, target, args) as unknown
      }
    },
  })
}
