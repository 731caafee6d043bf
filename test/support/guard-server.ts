/**
 * The guard client of a GPU server in a separate process, so that it can be killed, stopped, or run as
 * another user.
 */
import type { Guards, LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { openGuards } from '../../gpu-server/guard/local-guards.ts'
import { containersAt } from './stub-containers.ts'

export type GuardServerCall =
  | { readonly call: 'adopt' }
  | { readonly call: 'launch'; readonly spec: LaunchSpec }
  | { readonly call: 'lease'; readonly untilMono: number; readonly lengthMs: number }
  | { readonly call: 'suspend' | 'resume' | 'kill' | 'pids' | 'read'; readonly taskId: string }

const [folder = '', program = '', isolated = '', engine = ''] = process.argv.slice(2)
const guards = await openGuards({
  folder,
  program,
  isIsolated: isolated === 'isolated',
  endedOutputs: { maxTasks: 100, maxBytes: 1 << 20 },
  onFault: (fault) => process.send?.({ fault: fault.message }),
  ...(engine === '' ? {} : { containers: await containersAt(engine, folder) }),
})
guards.onExit((task) => process.send?.({ exited: task }))
process.on('message', (message: GuardServerCall & { readonly id: number }) => {
  answer(guards, message).then(
    (value) => process.send?.({ id: message.id, value }),
    (error: unknown) => process.send?.({ id: message.id, error: String(error) }),
  )
})
process.send?.({ ready: true })

async function answer(guards: Guards, call: GuardServerCall): Promise<unknown> {
  switch (call.call) {
    case 'adopt':
      return guards.adopt()
    case 'launch':
      return guards.launch(call.spec)
    case 'lease':
      return guards.lease(call.untilMono, call.lengthMs)
    case 'suspend':
      return guards.suspend(call.taskId, 1)
    case 'resume':
      return guards.resume(call.taskId, 1)
    case 'kill':
      return guards.kill(call.taskId, 1)
    case 'pids':
      return guards.processIds(call.taskId, 1)
    case 'read':
      return (await guards.readOutput(call.taskId, 1, 'stdout', 0, 1 << 16))?.data.toString()
  }
}
