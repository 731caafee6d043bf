/** CPU time of this thread in milliseconds; Node 22 reports that of the process only. */
export function threadCpuMs(): number {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)()
  return (user + system) / 1000
}
