// Writes three records and reads them: node old_kafkajs.js ADDRESS TOPIC CLIENT_ID, with the kafkajs of NODE_PATH.

const { Kafka } = require("kafkajs")
const [address, topic, clientId] = process.argv.slice(2)

async function main() {
  const kafka = new Kafka({ clientId, brokers: address.split(","), retry: { retries: 4 } })
  const producer = kafka.producer()
  await producer.connect()
  for (let number = 0; number < 3; number++) {
    await producer.send({ topic, messages: [{ key: "k", value: `order ${number}` }] })
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: `${topic}-g` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let got = 0
  await new Promise((done) => consumer.run({ eachMessage: async () => { if (++got === 3) done() } }))
  await consumer.disconnect()
  console.log(`read ${got}`)
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1) })
