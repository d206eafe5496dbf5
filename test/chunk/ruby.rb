require "json"
require "set"

module Store
  VERSION = "1.2.0"

  # Raised when a key is missing.
  class MissingKey < StandardError
    def initialize(key)
      super("no such key: #{key}")
      @key = key
    end
  end

  # Keeps values by name.
  class Memory
    include Enumerable
    attr_reader :name

    def initialize(name)
      @name = name
      @values = {}
    end

    # Looks a value up.
    def fetch(key)
      @values.fetch(key) { raise MissingKey, key }
    end

    def each(&block)
      return enum_for(:each) unless block
      @values.each(&block)
    end

    def self.load(path)
      store = new(File.basename(path))
      JSON.parse(File.read(path)).each { |k, v| store[k] = v }
      store
    end

    private

    def check(key)
      raise ArgumentError if key.nil?
      key.to_s
    end
  end
end
