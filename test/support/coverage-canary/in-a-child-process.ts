function song(day: 'even' | 'odd'): string {
  if (day === 'odd') {
    return 'sings on odd days' // never runs
  }
  return 'sings in a child process' // runs
}

export function silentCanary(): string {
  return 'is never called' // never runs
}

console.log(song('even')) // runs
